package crash

import (
	"context"
	"errors"
	"fmt"
	"time"

	"amends/internal/broker"
	"amends/internal/manifest"
	"amends/internal/report"
	"amends/internal/showcase/account"
	"amends/internal/showcase/barrier"
	"amends/internal/store/postgres"
	"amends/internal/verify"
)

// Scenario says which steps are run.
type Scenario string

// The scenarios.
const (
	Showcase Scenario = "showcase" // a history, every kill, the relay handed over
	Crash    Scenario = "crash"    // the worked example and the worker's kill
)

// stepTimeout bounds one step: a killed member is noticed after 6 s, a lease after 3 s.
const stepTimeout = 2 * time.Minute

// Options say what a run works with. All of it is required but Records.
type Options struct {
	DB        *postgres.DB // with its schema
	Admin     *broker.Admin
	Broker    broker.Options
	Database  string           // its URL, for the child processes
	Services  account.Services // its PostgreSQL is filled in
	Scenario  Scenario
	Namespace string
	Directory string   // is made; holds the manifest and the processes' logs
	Program   string   // the executable of the child processes
	Env       []string // their environment, without the database
	Access    []string // flags by which they reach the brokers, beside the addresses
	Records   int      // sales in the history, 0 or more
	Copies    int16    // of the topics' partitions, 1 or more
	Verify    func(context.Context, *manifest.Manifest, *postgres.Namespace) (*verify.Report, error)
	Commands  func(manifestPath string) []string // to look further
	Hooks     Hooks
}

// Hooks are told what happens; both are required.
type Hooks struct {
	Begin func(title string)
	End   func(account.Step)
}

// StepError says that a step did not show what it should.
type StepError struct {
	Step    string
	Finding string
}

// Error names the step and what was found.
func (e *StepError) Error() string { return fmt.Sprintf("step %s: %s", e.Step, e.Finding) }

// run is one run in progress.
type run struct {
	Options
	account   *account.Account
	manifest  *manifest.Manifest
	namespace *postgres.Namespace
	worker    *barrier.Barrier // in front of the worker's processes
	view      *barrier.Barrier
	started   []*child
	source    *child // the present worker, relay and view
	relay     *child
	viewer    *child
	last      account.State // as the step before left it
	repeated  []int64       // records that the run itself published again, by partition
}

// step is one part of a run.
type step struct {
	run   func(*run, context.Context, *account.Step) error
	name  string
	title string
	only  Scenario // "" for both
}

func steps() []step {
	return []step{
		{name: "provision", title: "A namespace and topics of its own", run: (*run).provision},
		{name: "start", title: "Worker, relay and view, each in a process of its own", run: (*run).start},
		{name: "history", title: "Records are loaded and published", run: (*run).history},
		{name: "worker-killed", title: "The worker is killed in the middle of a correction, between its writes and COMMIT", run: (*run).killWorker},
		{name: "worker-recovered", title: "A new worker decides the same record", run: (*run).recoverWorker},
		{name: "view-killed-before-upsert", title: "The view is killed before its upsert", run: (*run).killViewBefore, only: Showcase},
		{name: "view-killed-after-commit", title: "The next view is killed after its commit, before it knows", run: (*run).killViewAfter, only: Showcase},
		{name: "older-record", title: "An older record is delivered after the withdrawal", run: (*run).deliverOlder, only: Showcase},
		{name: "handover", title: "The relay is handed over to a standby", run: (*run).handOver, only: Showcase},
		{name: "drain", title: "Everything loaded reaches the view", run: (*run).drain},
		{name: "verify", title: "An independent recomputation is compared with the view, journal and topic", run: (*run).verify},
		{name: "stop", title: "The processes are told to end", run: (*run).stop},
	}
}

// Run runs a scenario and returns its report, also with an error once something was made. The report is PASS exactly when
// there is no error.
func Run(ctx context.Context, o Options) (*account.Account, error) {
	r := &run{Options: o, account: &account.Account{Schema: 1, Status: account.Fail, Scenario: string(o.Scenario), Namespace: o.Namespace,
		SourceTopic: o.Namespace + "-source", OutputTopic: o.Namespace + "-output", Directory: o.Directory, Manifest: manifestPath(o.Directory),
		Services: o.Services, Started: now(), Steps: []account.Step{}, Kills: []account.Kill{}, Processes: []account.Process{}, Commands: []string{}}}
	if err := r.refuse(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	defer r.endAll()
	err := r.walk(ctx)
	r.endAll()
	r.account.Seconds = seconds(time.Since(began))
	for _, c := range r.started {
		r.account.Processes = append(r.account.Processes, c.process())
	}
	r.account.Commands = append(r.account.Commands, r.Options.Commands(r.account.Manifest)...)
	if err == nil {
		r.account.Status = account.Pass
	}
	return r.account, err
}

// walk takes step after step until one fails.
func (r *run) walk(ctx context.Context) error {
	for _, s := range steps() {
		if s.only != "" && s.only != r.Scenario {
			continue
		}
		if err := r.take(ctx, s); err != nil {
			r.account.Failed = &account.Failure{Step: s.name, Cause: err.Error()}
			var own *StepError
			if !errors.As(err, &own) {
				err = fmt.Errorf("step %s: %w", s.name, err)
			}
			return err
		}
	}
	return nil
}

// take runs one step. It fails with *StepError where something that was found is not as it should be.
func (r *run) take(ctx context.Context, s step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepTimeout, fmt.Errorf("not done within %v", stepTimeout))
	defer cancel()
	r.Hooks.Begin(s.title)
	done := account.Step{Name: s.name, Title: s.title, Findings: []account.Finding{}, Moments: []account.Moment{}, Events: []account.Event{}}
	began := time.Now()
	err := s.run(r, ctx, &done)
	done.Seconds = seconds(time.Since(began))
	if err == nil {
		err = judge(done)
	}
	r.account.Steps = append(r.account.Steps, done)
	r.Hooks.End(done)
	return err
}

// judge fails with the first finding that is not as it should be, and where there is none at all.
func judge(s account.Step) error {
	for _, f := range s.Findings {
		if !f.OK {
			return &StepError{Step: s.Name, Finding: f.Text}
		}
	}
	if len(s.Findings) == 0 {
		return &StepError{Step: s.Name, Finding: "nothing was looked at"}
	}
	return nil
}

// verify compares the view with an independent recomputation, and the journal and the output topic with both.
func (r *run) verify(ctx context.Context, s *account.Step) error {
	v, err := r.Options.Verify(ctx, r.manifest, r.namespace)
	if err != nil {
		return err
	}
	r.account.Verify = report.Of(v)
	s.Findings = append(s.Findings, account.Finding{Text: "verify -deep " + report.Headline(v, r.manifest.Config.QuantityScale), OK: v.Status == verify.Pass})
	return nil
}

// event notes something that the run does, with the time at which it began.
func event(s *account.Step, format string, args ...any) time.Time {
	at := now()
	s.Events = append(s.Events, account.Event{At: at, Text: fmt.Sprintf(format, args...)})
	return at
}

// now is UTC to the millisecond.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// seconds rounds to milliseconds.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
