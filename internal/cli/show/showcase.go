package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/embedded"
	"amends/internal/progress"
	"amends/internal/showcase/account"
	"amends/internal/showcase/crash"
	"amends/internal/usage"
	"amends/internal/verify"
)

// Parts are what the program gives these commands.
type Parts struct {
	// Verify verifies a namespace to the bottom and records that it did.
	Verify func(context.Context, *target.Target, *target.Session) (*verify.Report, error)
	// Named writes the words of a command as this program names it.
	Named func(text string) string
	// Look are the commands that look further at a namespace, without -manifest.
	Look []string
}

// How many sales a showcase's history has. Durable state is read as a whole while a transaction is held, which its process
// puts up with for some seconds.
const (
	standardRecords = 4_000
	maxRecords      = 100_000
)

// options are a showcase's flags.
type options struct {
	stack     embedded.StackOptions
	namespace string
	work      string
	file      string
	form      string
	records   int
	copies    int16
}

// Showcase is amends showcase.
func Showcase(e *target.Env, parts Parts) *cobra.Command {
	o := options{records: standardRecords}
	cmd := &cobra.Command{
		Short: "Kill a pipeline's processes where it hurts and show that nothing is lost or doubled",
		Long: `Makes a namespace, topics and processes of its own and loads a history. Then it kills a worker in the middle of a
correction, between its writes and COMMIT, kills a view before its upsert and another after its commit, delivers an older
record after a withdrawal, hands the relay over to a standby, drains and verifies. After each step it reads durable state
from PostgreSQL and requires what is right; a step that does not show it ends the run with code 1.

With AMENDS_DATABASE_URL it uses that database and the brokers of -brokers, else the embedded stack of -dir, which it starts
where it does not run. Namespace, topics and directory stay, to look further; what exists already is refused (code 2). Ctrl-C
ends its processes.`,
		Example: `  amends showcase
  amends showcase -report showcase.html
  amends showcase -brokers kafka-1:9092 -replication-factor 3 -namespace drill-7 -o json`,
		Args: usage.NoArgs,
	}
	e.BrokersFlag(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.form, "output", "o", string(account.Text), "`form` of the report on stdout: text, json or html")
	target.Complete(cmd, "output", account.Text, account.JSON, account.HTML)
	f.StringVar(&o.file, "report", "", "`file` to write the report to as well; its name's end says the form: .html, .json, else text")
	f.StringVar(&o.namespace, "namespace", "", "`name` of the namespace to make (default: showcase- and the time)")
	f.StringVar(&o.work, "work", "", "`directory` to make for manifest and logs (default: amends-NAMESPACE in the directory for temporary files)")
	f.IntVar(&o.records, "records", o.records, "`sales` in the history, 0 to 100,000; their cancellations come on top")
	f.Int16Var(&o.copies, "replication-factor", 1, "`copies` of each partition, 1 or more")
	f.StringVar(&o.stack.Dir, "dir", "", "`directory` of the embedded stack (default: amends/stack in the user's data home)")
	f.StringVar(&o.stack.BinDir, "postgres-bin", "", "`directory` of PostgreSQL's programs, for an embedded stack (default: they are looked for)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(cmd); err != nil {
			return err
		}
		named, err := usage.Secret(e.Getenv, target.DatabaseName)
		if err != nil {
			return err
		}
		if named == "" && cmd.Flags().Changed("brokers") {
			return target.MissingDatabase()
		}
		p := &play{Env: e, parts: parts, scenario: crash.Showcase, options: o, words: lines(e, e.Stderr)}
		if named == "" {
			return p.embedded(cmd.Context(), account.Form(o.form))
		}
		brokers, err := e.BrokerOptions(nil)
		if err != nil {
			return err
		}
		return p.report(cmd.Context(), services{database: named, brokers: brokers}, account.Form(o.form))
	}
	return cmd
}

// check refuses what no run can use.
func (o *options) check(cmd *cobra.Command) error {
	switch {
	case !account.Form(o.form).Valid():
		return usage.Errorf("-o %s: text, json or html", o.form)
	case o.records < 0 || o.records > maxRecords || o.copies < 1:
		return usage.Errorf("%s needs -records of 0 to %d and -replication-factor of 1 or more", cmd.CommandPath(), maxRecords)
	}
	return nil
}

// Crash tells the story of one kill on an embedded stack: the worker, in the middle of a correction.
func Crash(ctx context.Context, e *target.Env, stack embedded.StackOptions, asJSON bool, parts Parts) error {
	p := &play{Env: e, parts: parts, scenario: crash.Crash, options: options{stack: stack, copies: 1}, words: story(e, e.Stdout)}
	if asJSON {
		p.words = lines(e, e.Stderr)
		return p.embedded(ctx, account.JSON)
	}
	return p.embedded(ctx, "")
}

// embedded runs on the embedded stack, which it starts or attaches to.
func (p *play) embedded(ctx context.Context, form account.Form) (err error) {
	o := p.options.stack
	if o.Dir == "" {
		o.Dir = p.Getenv("AMENDS_DIR")
	}
	o.Progress = func(line string) { fmt.Fprintln(p.Stderr, line) }
	stack, err := embedded.StartStack(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stack.Stop()) }()
	at := stack.Endpoints()
	if stack.Attached() {
		fmt.Fprintf(p.Stderr, "process %d runs the stack in %s; using it\n", at.PID, stack.Dir())
	}
	return p.report(ctx, services{database: at.DatabaseURL, brokers: target.StackOptions(at.Brokers), stack: stack}, form)
}

// report runs and writes the report: to the file of -report, and on stdout where there is a form for it.
func (p *play) report(ctx context.Context, on services, form account.Form) error {
	made := false
	if p.options.file != "" {
		var err error
		if made, err = writable(p.options.file); err != nil {
			return err
		}
	}
	a, err := p.run(ctx, on)
	if a == nil {
		if made {
			err = errors.Join(err, os.Remove(p.options.file))
		}
		return err
	}
	if p.options.file != "" {
		err = errors.Join(err, writeFile(p.options.file, a))
	}
	if form != "" {
		return errors.Join(err, a.Write(p.Stdout, form))
	}
	fmt.Fprintf(p.Stdout, "  %s %s\n\n", account.Mark(a.Status == account.Pass), a.Headline())
	for i, c := range a.Commands {
		prefix := "     "
		if i == 0 {
			prefix = "Try  "
		}
		fmt.Fprintf(p.Stdout, "  %s %s\n", prefix, c)
	}
	return err
}

// writable refuses a file that could not be written at the end, before anything runs; made says that it was not there.
func writable(path string) (made bool, err error) {
	_, missing := os.Stat(path)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return false, usage.Errorf("-report: %v", err)
	}
	return errors.Is(missing, fs.ErrNotExist), f.Close()
}

// writeFile writes the report in the form that the file's name asks for.
func writeFile(path string, a *account.Account) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return errors.Join(a.Write(f, account.FormOf(path)), f.Close())
}

// names fills in the namespace and the directory.
func (o *options) names(scenario crash.Scenario) {
	if o.namespace == "" {
		o.namespace = string(scenario) + "-" + time.Now().UTC().Format("20060102-150405")
	}
	if o.work == "" {
		o.work = filepath.Join(os.TempDir(), "amends-"+o.namespace)
	}
}

// lines says one line a step; on a terminal the step in progress is the live line.
func lines(e *target.Env, out io.Writer) crash.Hooks {
	live := progress.On(out, e.Getenv).Live()
	return crash.Hooks{
		Begin: func(title string) {
			if live {
				fmt.Fprintf(out, "\r\033[K  … %s\r", title)
			}
		},
		End: func(s account.Step) { fmt.Fprintf(out, "%s  %s\n", clear(live), headline(s)) },
	}
}

// story says each step with what was done and found.
func story(e *target.Env, out io.Writer) crash.Hooks {
	h := lines(e, out)
	end := h.End
	h.End = func(s account.Step) {
		end(s)
		for _, event := range s.Events {
			fmt.Fprintf(out, "      %s\n", event.Text)
		}
		for _, f := range s.Findings {
			fmt.Fprintf(out, "    %s %s\n", account.Mark(f.OK), f.Text)
		}
		fmt.Fprintln(out)
	}
	return h
}

func headline(s account.Step) string {
	return fmt.Sprintf("%s %s   %.1f s", account.Mark(s.OK()), s.Title, s.Seconds)
}

// clear takes the live line off a terminal.
func clear(live bool) string {
	if live {
		return "\r\033[K"
	}
	return ""
}
