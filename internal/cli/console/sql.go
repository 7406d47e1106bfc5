package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/phrase"
	"amends/internal/store/postgres/console"
	"amends/internal/usage"
)

const (
	standardTimeout = 30 * time.Second
	longestScript   = 1 << 20 // bytes
)

// SQL builds the command.
func SQL(e *target.Env) *cobra.Command {
	var statement string
	var timeout time.Duration
	cmd := &cobra.Command{
		Short: "Ask the database: a console that only reads",
		Long: `Runs statements that read, each in a read-only transaction of its own that is always rolled back: from -c, else from stdin, else
typed at a prompt. Names are looked for in the schema amends; its views balances, alerts, statuses, key_state, output_state
and outbox are meant for people (\d lists them). The database is that of AMENDS_DATABASE_URL, else of the running embedded
stack. A statement that writes is refused, whatever it is wrapped in. -watch needs -c.`,
		Example: `  amends sql -c "SELECT item, location, day, scaled_close FROM balances WHERE present AND trusted"
  amends sql -o csv -c "TABLE alerts" > alerts.csv
  amends sql -c "TABLE outbox" -watch 5s
  amends sql`,
		Args: usage.NoArgs,
	}
	e.RowsFlag(cmd)
	cmd.Flags().StringVarP(&statement, "command", "c", "", "`statements` to run, with semicolons between")
	cmd.Flags().DurationVar(&timeout, "timeout", standardTimeout, "how long one statement may take")
	usage.Own(cmd, "timeout", "sql-timeout") // that of verify bounds much more
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		form, err := e.Form()
		if err != nil {
			return err
		}
		if timeout < time.Millisecond {
			return usage.Errorf("-timeout %v: 1ms or more", timeout)
		}
		words, watched := e.Stderr, cmd.Flags().Changed("watch")
		if watched {
			words = io.Discard // how many rows there are would spoil a screen that is painted over
		}
		if watched && statement == "" {
			return usage.Errorf("-watch needs -c: stdin is read once")
		}
		url, err := e.DatabaseURL()
		if err != nil {
			return err
		}
		opening, cancel := context.WithTimeout(cmd.Context(), target.GiveUp)
		defer cancel()
		var c *console.Console
		if err := e.Patiently(opening, "PostgreSQL", func() (err error) {
			c, err = console.Open(opening, url, timeout)
			return err
		}); err != nil {
			return err
		}
		defer c.Close()
		a := &asker{console: c, out: e.Stdout, words: words, form: form}
		if statement != "" {
			return a.script(cmd.Context(), statement)
		}
		if in, ok := e.Stdin.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
			return a.prompt(cmd.Context(), in)
		}
		text, err := io.ReadAll(io.LimitReader(e.Stdin, longestScript+1))
		if err != nil {
			return fmt.Errorf("read statements: %w", err)
		}
		if len(text) > longestScript {
			return usage.Errorf("stdin holds more than %d bytes of statements", longestScript)
		}
		return a.script(cmd.Context(), string(text))
	}
	return watch.Wrap(e, cmd)
}

// asker runs statements and writes their answers.
type asker struct {
	console *console.Console
	out     io.Writer
	words   io.Writer
	form    target.Form
	wrote   bool // whether an answer was written before
}

// script runs every statement of a text; the first that fails ends it, and so does \q.
func (a *asker) script(ctx context.Context, text string) error {
	statements, rest := console.Split(text)
	if rest != "" {
		statements = append(statements, rest)
	}
	if len(statements) == 0 {
		return usage.Errorf("no statement; give one with -c or on stdin")
	}
	for _, s := range statements {
		if s == `\q` {
			return nil
		}
		if err := a.ask(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// ask runs one statement, or a command that begins with a backslash.
func (a *asker) ask(ctx context.Context, statement string) error {
	if statement = described(statement); statement == "" {
		return usage.Errorf(`unknown command; there are \d, \d NAME and \q`)
	}
	if a.wrote && a.form != target.FormJSON {
		fmt.Fprintln(a.out)
	}
	a.wrote = true
	w := writerOf(a.form, a.out)
	rows, err := a.console.Query(ctx, statement, console.Sink{Columns: w.columns, Row: w.row})
	if err == nil {
		err = w.end()
	} else {
		_ = w.flush() // why the answer broke off is said instead
	}
	if err != nil {
		return wrong(err)
	}
	if a.form == target.FormText {
		fmt.Fprintf(a.words, "(%s)\n", phrase.Counted(rows, "row"))
	}
	return nil
}

// wrong makes a wrong invocation of what the person who typed the statement can mend.
func wrong(err error) error {
	var refused *console.Refused
	if errors.As(err, &refused) {
		return usage.Errorf("%v", refused)
	}
	return err
}
