package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/manifest"
	"amends/internal/phrase"
	"amends/internal/progress"
	"amends/internal/recovery"
	"amends/internal/report"
	"amends/internal/store"
	"amends/internal/usage"
	"amends/internal/verify"
)

// defaultBudget is that of a rebuild's verification unless told.
const defaultBudget = 10 * time.Minute

// rebuildFlags are what rebuild is asked for.
type rebuildFlags struct {
	namespace   string
	topic       string
	file        string
	timeout     time.Duration
	replication int16
	execute     bool
}

// Rebuild returns the command rebuild.
func Rebuild(e *target.Env) *cobra.Command {
	var f rebuildFlags
	cmd := &cobra.Command{
		Short: "Read the complete source into a new namespace with a new output topic, and verify it",
		Long: `Reads the complete source of a namespace again, through the production worker, relay and view, into a new namespace of the
same configuration that is bound to a new output topic, and verifies that, quiesced and deep. The namespace that is rebuilt
and its output stay as they are, and no consumer is moved to the new topic.
Without -execute it says what it would do and how long that takes, and changes nothing. Ended or killed at any moment, the same
command goes on from its own record. A namespace or topic that exists and is not recorded as this rebuild's is refused and kept.
The code is 0 for PASS, else that of the verification (BLOCKED 4: complete, with blocked keys; INCOMPLETE 3, DRIFT 5: run again).`,
		Example: `  amends rebuild -manifest pipeline.json -namespace shop2 -topic shop2-output -manifest-out rebuilt.json
  amends rebuild -manifest pipeline.json -namespace shop2 -topic shop2-output -manifest-out rebuilt.json -execute
  amends compare -manifest pipeline.json -with rebuilt.json`,
		Args: usage.NoArgs,
	}
	e.ManifestFlag(cmd)
	e.BrokersFlag(cmd)
	e.OutputFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.namespace, "namespace", "", "`name` of the new namespace: [a-z0-9][a-z0-9._-]{0,63}")
	flags.StringVar(&f.topic, "topic", "", "`name` of the new output topic")
	flags.StringVar(&f.file, "manifest-out", "", "`file` to write the manifest of the new namespace to; one with other contents is not overwritten")
	flags.BoolVar(&f.execute, "execute", false, "do it")
	flags.DurationVar(&f.timeout, "timeout", defaultBudget, "`budget` of the verification, a running load that is waited for included")
	flags.Int16Var(&f.replication, "replication-factor", 1, "`copies` of each partition of the new topic, 1 or more")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := e.JSON()
		if err != nil {
			return err
		}
		if f.namespace == "" || f.topic == "" || f.file == "" || f.timeout <= 0 || f.replication < 1 {
			return usage.Errorf("%s needs -namespace, -topic and -manifest-out, a -timeout of more than 0 and -replication-factor of 1 or more", cmd.CommandPath())
		}
		return f.run(cmd.Context(), e, asJSON)
	}
	return cmd
}

// rebuilt is the answer of a rebuild.
type rebuilt struct {
	*rebuildFlags
	origin string
	plan   *recovery.RebuildPlan
	result *recovery.Rebuilt // nil for a dry run
}

func (f *rebuildFlags) run(ctx context.Context, e *target.Env, asJSON bool) error {
	t, s, err := open(ctx, e)
	if err != nil {
		return err
	}
	defer s.Close()
	stages := progress.On(e.Stderr, e.Getenv).Stages(recovery.Units())
	defer stages.Done()
	r := &recovery.Rebuild{Origin: t.Manifest, From: s.Namespace, DB: s.DB, Topics: s.Admin, Broker: t.Broker, Namespace: f.namespace, Topic: f.topic,
		Replication: f.replication, Timeout: f.timeout, Progress: stages.Report, Bound: func(m *manifest.Manifest) error { return writeManifest(f.file, m) },
		Logger: slog.New(slog.NewTextHandler(&beside{e.Stderr, stages}, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	a := &rebuilt{rebuildFlags: f, origin: t.Manifest.Config.Namespace}
	if a.plan, err = r.Plan(ctx); err != nil {
		return err
	}
	if err := free(f.file, a.plan.Manifest); err != nil {
		return err
	}
	if !f.execute {
		return a.write(e.Stdout, asJSON)
	}
	if !a.done() { // else the answer says it
		fmt.Fprintln(e.Stderr, a.words())
	}
	a.result, err = r.Execute(ctx)
	stages.Done()
	if err != nil {
		return a.ended(err)
	}
	if err := a.write(e.Stdout, asJSON); err != nil {
		return err
	}
	if code := a.status().ExitCode(); code != 0 {
		return &usage.Verdict{Code: code, Text: "rebuild " + a.headline()}
	}
	return nil
}

// ended says how far a rebuild got and how it goes on, in front of why it ended.
func (a *rebuilt) ended(err error) error {
	if errors.Is(err, recovery.ErrDestination) || errors.Is(err, recovery.ErrUncertain) || a.result.Record == nil {
		return err
	}
	return fmt.Errorf("rebuild of %s into %s ended in phase %s; the same command goes on from there: %w", a.origin, a.namespace, a.result.Record.Phase, err)
}

// beside is a stream that shares a terminal with a display of progress.
type beside struct {
	out    io.Writer
	stages *progress.Stages
}

// Write takes the live line away first.
func (b *beside) Write(p []byte) (int, error) {
	b.stages.Hide()
	return b.out.Write(p)
}

// free refuses a file that is there and is not, or cannot be known to be, the manifest that would be written, and one that is not
// there and cannot be written: it is the last thing of a rebuild that may be refused, so it is looked at before anything is made.
func free(path string, m *manifest.Manifest) error {
	have, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := writable(filepath.Dir(path)); err != nil {
			return usage.Errorf("-manifest-out %s: no file can be made there: %v", path, err)
		}
		return nil
	case err != nil:
		return usage.Errorf("-manifest-out: %v", err)
	case m.Output != nil && bytes.Equal(have, m.Append(nil)):
		return nil
	}
	return usage.Errorf("-manifest-out %s exists and is another file; name one that does not exist", path)
}

// writable reports why no file can be made in a directory, nil where one can.
func writable(directory string) error {
	if info, err := os.Stat(directory); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s is no directory", directory)
	}
	probe, err := os.CreateTemp(directory, ".amends-*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// writeManifest writes a manifest to a file that is not there, whole or not at all.
func writeManifest(path string, m *manifest.Manifest) (err error) {
	if err := free(path, m); err != nil {
		return err
	}
	text := m.Append(nil)
	temporary := fmt.Sprintf("%s.%d", path, os.Getpid())
	out, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	_, err = out.Write(text)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return fmt.Errorf("write manifest: %w", errors.Join(err, os.Remove(temporary)))
	}
	return nil
}

// words say what is to be done.
func (a *rebuilt) words() string {
	p := a.plan
	if a.done() {
		return fmt.Sprintf("rebuild of %s into %s, output topic %s, is done, verify %s; finished %s", a.origin, a.namespace, a.topic, p.Record.Status,
			p.Record.Finished.UTC().Format(time.RFC3339))
	}
	how := "begins"
	if p.Record != nil {
		how = "goes on from phase " + string(p.Record.Phase)
	}
	return fmt.Sprintf("rebuild of %s into %s, output topic %s, %s: %s to read, %s to publish; about %s", a.origin, a.namespace, a.topic, how,
		phrase.Counted(p.Records, "source offset"), phrase.Counted(p.Outputs, "message"), about(p.Estimate))
}

// done says whether the rebuild was done before this command.
func (a *rebuilt) done() bool {
	return a.plan.Record != nil && a.plan.Record.Phase == store.RebuildDone
}

// record is the rebuild's row as it is now, nil before it began.
func (a *rebuilt) record() *store.Rebuild {
	if a.result != nil {
		return a.result.Record
	}
	return a.plan.Record
}

// status is that of the verification: of this run, or of the one that ended the rebuild.
func (a *rebuilt) status() verify.Status {
	switch {
	case a.result != nil && a.result.Report != nil:
		return a.result.Report.Status
	case a.record() != nil:
		return verify.Status(a.record().Status)
	}
	return ""
}

func (a *rebuilt) headline() string {
	record := a.record()
	switch {
	case a.result == nil && a.done():
		return "DRY RUN  " + a.words() + "; nothing is left to do"
	case a.result == nil:
		return "DRY RUN  " + a.words() + "; nothing was changed, -execute does it"
	case record.Phase != store.RebuildDone:
		return fmt.Sprintf("NOT DONE  %s stays in phase %s: verify %s", a.namespace, record.Phase, report.Headline(a.result.Report, a.plan.Manifest.Config.QuantityScale))
	case a.result.Report == nil:
		return fmt.Sprintf("DONE  %s was rebuilt before, verify %s; finished %s", a.namespace, record.Status, record.Finished.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("REBUILT  %s from %s: verify %s", a.namespace, a.origin, report.Headline(a.result.Report, a.plan.Manifest.Config.QuantityScale))
}

func (a *rebuilt) write(out io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(out, a.json())
	}
	_, err := io.WriteString(out, a.text())
	return err
}

func (a *rebuilt) text() string {
	var b strings.Builder
	fmt.Fprintln(&b, a.headline())
	if a.result == nil {
		return b.String()
	}
	fmt.Fprintf(&b, "namespace %s, output topic %s (%s), manifest %s; took %s\n", a.namespace, a.record().Topic, a.record().Incarnation, a.file,
		a.result.Elapsed.Round(10*time.Millisecond))
	fmt.Fprintf(&b, "namespace %s and its output are as they were; no consumer was moved\n", a.origin)
	return b.String()
}

type (
	jsonRebuild struct {
		Schema       int          `json:"schema"`
		Origin       string       `json:"origin"`
		Namespace    string       `json:"namespace"`
		Topic        string       `json:"topic"`
		Incarnation  *string      `json:"incarnation"`
		ManifestFile string       `json:"manifest_file"`
		Executed     bool         `json:"executed"`
		Phase        *string      `json:"phase"`
		Status       *string      `json:"status"`
		Plan         jsonPlan     `json:"plan"`
		StartedAt    *string      `json:"started_at"`
		FinishedAt   *string      `json:"finished_at"`
		Verify       *report.JSON `json:"verify"`
		Elapsed      float64      `json:"elapsed_seconds"`
	}
)

func (a *rebuilt) json() *jsonRebuild {
	j := &jsonRebuild{Schema: 1, Origin: a.origin, Namespace: a.namespace, Topic: a.topic, ManifestFile: a.file, Executed: a.result != nil,
		Plan: planJSON(&a.plan.Plan), Status: known(string(a.status()))}
	if r := a.record(); r != nil {
		j.Phase, j.Incarnation, j.StartedAt, j.FinishedAt = known(string(r.Phase)), known(r.Incarnation), moment(r.Started), moment(r.Finished)
	}
	if a.result != nil {
		j.Elapsed = a.result.Elapsed.Seconds()
		if a.result.Report != nil {
			j.Verify = report.Of(a.result.Report)
		}
	}
	return j
}

// known is nil for what is not known yet.
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func moment(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return known(t.UTC().Format(time.RFC3339Nano))
}
