package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"amends/internal/cli/show"
	"amends/internal/cli/target"
	"amends/internal/embedded"
	"amends/internal/lease"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/provision"
	"amends/internal/report"
	"amends/internal/roles"
	"amends/internal/showcase"
	"amends/internal/store"
	"amends/internal/usage"
	"amends/internal/verify"
	"amends/internal/workload"
)

// demoWorkers is how many source members a demo runs: both partitions move on their own.
const demoWorkers = 2

type demoOptions struct {
	stack    embedded.StackOptions
	scenario string
	file     string
	once     bool
	json     bool
}

func (a *app) demo() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "[crash|retail]",
		Short: "Tell the main story on an embedded stack; nothing needs to be installed",
		Long: `Starts the embedded stack, creates a namespace, runs a worker, a relay and a view, loads records and a correction, shows what
was published and repaired, and ends with an independent verification. It keeps running until Ctrl-C unless -once is given.
Data is kept, also through kill -9, and the next start tells the same story. crash kills a worker in the middle of the
correction, in a namespace of its own, and ends. retail loads a year of sales with their cancellations, generated or from the
Online Retail file.`,
		Example: `  amends demo
  amends demo -once -o json
  amends demo crash
  amends demo retail
  amends demo retail -file online-retail-top60.csv -once`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && args[0] != "retail" && args[0] != "crash" {
				return usage.Errorf("%s: unknown scenario %q; try: %s, %s crash, %s retail", cmd.CommandPath(), strings.Join(args, " "), cmd.CommandPath(), cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
	}
	a.stackFlags(cmd, &o.stack)
	a.OutputFlag(cmd)
	cmd.Flags().BoolVar(&o.once, "once", false, "end after the verification, with its code")
	cmd.Flags().StringVar(&o.file, "file", "", "retail: Online Retail CSV `file` instead of generated sales")
	usage.Own(cmd, "file", "demo-file") // that of source load holds records
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if o.json, err = a.JSON(); err != nil {
			return err
		}
		if len(args) == 1 {
			o.scenario = args[0]
		}
		if o.file != "" && o.scenario != "retail" {
			return usage.Errorf("-file belongs to: %s retail", cmd.CommandPath())
		}
		if o.scenario == "crash" {
			return show.Crash(cmd.Context(), a.Env, o.stack, o.json, a.parts())
		}
		err = a.tellDemo(cmd.Context(), &o)
		if stopped(cmd.Context()) && errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
	return cmd
}

// tellDemo runs one demo from the start of the stack to its end.
func (a *app) tellDemo(ctx context.Context, o *demoOptions) (err error) {
	data, scenario, err := o.history()
	if err != nil {
		return err
	}
	stack, err := a.startStack(ctx, o.stack)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stack.Stop()) }()
	d, err := a.provisionDemo(ctx, stack, scenario)
	if errors.Is(err, store.ErrSchema) {
		err = fmt.Errorf("%w; the data in %s is another version's: %s begins anew", err, stack.Dir(), a.Program+" demo -reset")
	}
	if err != nil {
		return err
	}
	defer d.session.Close()
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	ended := make(chan error, 1)
	go func() {
		err := d.runRoles(running)
		ended <- err
		if err != nil {
			end(err)
		}
	}()
	words := io.Writer(a.Stdout)
	if o.json {
		words = a.Stderr
	}
	d.say = func(line string) { fmt.Fprintln(words, strings.TrimRight("  "+line, " ")) }
	d.intro(stack)
	result, err := d.tell(running, data)
	if err == nil {
		d.outro(result, o.once && !stack.Attached())
		if o.json {
			err = demoJSON(a.Stdout, result, stack.Endpoints())
		}
	} else if cause := context.Cause(running); cause != nil && !stopped(ctx) {
		err = cause // the role's own error, not that of who waited for it
	}
	if err == nil && !o.once {
		d.say("Running. Ctrl-C stops it and keeps the data.")
		err = wait(ctx, stack, ended)
	}
	end(nil)
	if err == nil && o.once && result.Report.Status != verify.Pass {
		err = &statusError{result.Report, d.target.Manifest.Config.QuantityScale}
	}
	return errors.Join(err, drained(ended))
}

// wait returns when a signal comes, a role ends or the stack fails.
func wait(ctx context.Context, stack *embedded.Stack, ended chan error) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		ended <- nil
		return err
	case <-stack.Failed():
		return stackFailed(stack)
	}
}

// drained waits for the roles; that they were told to end is no error.
func drained(ended chan error) error {
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// history returns the retail data, nil for the worked example, and the scenario.
func (o *demoOptions) history() (*workload.Dataset, showcase.Scenario, error) {
	switch {
	case o.scenario == "":
		return nil, showcase.WorkedExample(), nil
	case o.file == "":
		data := workload.SyntheticRetail(workload.RetailOptions{Seed: 1})
		return data, showcase.RetailScenario("retail", data), nil
	}
	f, err := os.Open(o.file)
	if err != nil {
		return nil, showcase.Scenario{}, usage.Errorf("open retail file: %v", err)
	}
	defer f.Close()
	data, err := workload.ReadRetail(f)
	if err != nil {
		return nil, showcase.Scenario{}, usage.Errorf("read %s: %v", o.file, err)
	}
	return data, showcase.RetailScenario("retail-file", data), nil
}

// demo is a provisioned demo on a running stack.
type demo struct {
	*app
	target  *target.Target
	session *target.Session
	dir     string // of the stack
	path    string // of the manifest
	say     func(string)
}

func (a *app) provisionDemo(ctx context.Context, stack *embedded.Stack, scenario showcase.Scenario) (*demo, error) {
	path, err := stack.File(scenario.Name + ".json")
	if err != nil {
		return nil, err
	}
	e := stack.Endpoints()
	d := &demo{app: a, dir: stack.Dir(), path: path, target: &target.Target{Broker: target.StackOptions(e.Brokers), Database: e.DatabaseURL}}
	provisioning, cancel := context.WithTimeout(ctx, target.Migrating)
	defer cancel()
	admin, err := d.admin()
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	m, err := scenario.Provision(provisioning, admin, path, func(ctx context.Context, m *manifest.Manifest) (provision.Binder, error) {
		d.target.Manifest = m
		d.session, err = a.Open(ctx, d.target, target.Create)
		if err != nil {
			return nil, err
		}
		return d.session.Namespace, nil
	})
	if err == nil {
		d.target.Manifest = m
		err = provision.CheckTopics(provisioning, admin, m)
	}
	if err == nil && !stack.Attached() {
		err = stack.SetManifest(path)
	}
	if err != nil && d.session != nil {
		d.session.Close()
	}
	return d, err
}

// runRoles runs all three roles until ctx ends. Their words are for other commands; only what ends them is said.
func (d *demo) runRoles(ctx context.Context) error {
	log := slog.New(slog.NewTextHandler(d.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	return roles.Run(ctx, roles.Options{Manifest: d.target.Manifest, Namespace: d.session.Namespace, Topics: d.session.Admin, Broker: d.target.Broker,
		Server: d.session.DB.Server, Holder: lease.Holder(), Logger: log, Roles: roles.All(), Workers: demoWorkers})
}

// intro prints the block of endpoints.
func (d *demo) intro(stack *embedded.Stack) {
	e, m := stack.Endpoints(), d.target.Manifest
	version := e.PostgreSQL
	d.say(fmt.Sprintf("✓ PostgreSQL %-12s %s", version, hostOf(e.DatabaseURL)))
	d.say(fmt.Sprintf("✓ %-23s %s   (embedded; not for production)", "Kafka-compatible", strings.Join(e.Brokers, ",")))
	d.say(fmt.Sprintf("✓ topics, workers %d, relay 1, view 1", demoWorkers))
	d.say(fmt.Sprintf("SQL         psql '%s'", e.DatabaseURL))
	d.say(fmt.Sprintf("Kafka       kcat -b %s -C -t %s -J", strings.Join(e.Brokers, ","), m.Output.Topic))
	d.say("")
}

// outro prints the verification and what to try next; where the stack stops now, that is what keeps one running.
func (d *demo) outro(r *showcase.Result, stops bool) {
	mark := "✓"
	if r.Report.Status != verify.Pass {
		mark = "✗"
	}
	d.say(fmt.Sprintf("%s verify %s", mark, report.Headline(r.Report, d.target.Manifest.Config.QuantityScale)))
	d.say("")
	if stops {
		d.say("Try   " + d.command("demo"))
		d.say("      " + d.command("demo retail"))
		d.say("")
		return
	}
	first := "view show"
	if _, known := d.target.Manifest.Config.Terms(ledger.StockKey{Item: "widget", Location: "berlin"}); known {
		first = "explain widget berlin 2026-01-02"
	}
	d.say("Try   " + d.command(first))
	d.say("      " + d.command("verify -deep"))
	d.say("      " + d.command("demo crash") + "     # kill the worker mid-transaction and watch")
	d.say("      " + d.command("demo retail") + "    # a year of sales with real cancellations")
	d.say("")
}

// command writes a command as it can be pasted: with the path that this program was started by, and the stack's own
// directory where it is not the default.
func (d *demo) command(text string) string {
	line := target.Quote(d.Program) + " " + d.named(text)
	if standard, err := embedded.DefaultDir(); err != nil || filepath.Clean(standard) != d.dir {
		line = "AMENDS_DIR=" + target.Quote(d.dir) + " " + line
	}
	return line
}

// tell tells the story of the scenario.
func (d *demo) tell(ctx context.Context, data *workload.Dataset) (*showcase.Result, error) {
	p := &demoPipeline{d}
	dir, err := os.MkdirTemp("", "amends-demo-")
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(dir)
	if data == nil {
		return (&showcase.Story{Pipeline: p, Say: d.say, Dir: dir}).Tell(ctx)
	}
	return (&showcase.Retail{Pipeline: p, Data: data, Say: d.say, Progress: d.progress(), Dir: dir}).Tell(ctx)
}

// progress returns what replaces the last line on a terminal, and nothing elsewhere.
func (d *demo) progress() func(string) {
	f, ok := d.Stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func(string) {}
	}
	return func(line string) { fmt.Fprintf(f, "\r\033[K  %s\r", line) }
}
