package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/broker"
	"amends/internal/cli/target"
	"amends/internal/store"
	"amends/internal/usage"
)

// The interval between the beginnings of two rounds, in seconds and what they are made of.
const (
	Standard = 2 * time.Second
	shortest = 100 * time.Millisecond
	longest  = 24 * time.Hour
)

// Wrap adds -watch to a read command and returns it. With the flag the command runs again every interval until its
// context ends, and then succeeds: the codes of rounds do not count. A round that fails is shown and the next one
// waited for, except that the first must answer or find a service away.
func Wrap(e *target.Env, cmd *cobra.Command) *cobra.Command {
	var interval time.Duration
	f := cmd.Flags()
	f.DurationVar(&interval, "watch", 0, "answer again every `interval` until stopped; without one every "+Standard.String())
	f.Lookup("watch").NoOptDefVal = Standard.String()
	once := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("watch") {
			return once(cmd, args)
		}
		if interval < shortest || interval > longest {
			return usage.Errorf("-watch %v: %v to %v", interval, shortest, longest)
		}
		w := &watcher{env: e, interval: interval, form: form(cmd), title: cmd.CommandPath()}
		w.run = func() error { return once(cmd, args) }
		return w.watch(cmd.Context())
	}
	return cmd
}

// form returns what -o or -format say, "text" where a command has neither.
func form(cmd *cobra.Command) string {
	for _, name := range []string{"output", "format"} {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
	}
	return string(target.FormText)
}

// watcher repeats one command.
type watcher struct {
	env      *target.Env
	run      func() error
	title    string
	form     string
	interval time.Duration

	last   []byte    // the last answer
	at     time.Time // of the last answer
	failed string    // what was last said of a failure
}

func (w *watcher) watch(ctx context.Context) error {
	show := w.append
	if s := screenOf(w.env.Stdout, w.env.Getenv); s != nil && w.form == string(target.FormText) {
		show = func(began time.Time, err error) error { return s.paint(w, began, err) }
		defer s.leave()
	}
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for first := true; ; first = false {
		began := time.Now()
		answer, err := w.round()
		if ctx.Err() != nil {
			return nil
		}
		if len(answer) > 0 {
			w.last, w.at = answer, began
		}
		if first && err != nil && len(answer) == 0 && !away(err) {
			return err
		}
		if err := show(began, err); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// round runs the command once and returns what it wrote to stdout: nothing, where what it wrote is half a JSON value.
func (w *watcher) round() ([]byte, error) {
	var answer bytes.Buffer
	stdout := w.env.Stdout
	w.env.Stdout = &answer
	defer func() { w.env.Stdout = stdout }()
	err := w.run()
	if err != nil && w.form == string(target.FormJSON) && !json.Valid(answer.Bytes()) {
		return nil, err
	}
	return answer.Bytes(), err
}

// away: waiting may help, so that not even the first round needs an answer.
func away(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, broker.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// append writes a round behind the last: text under a line with the time, other forms as they are. A failure goes to
// stderr, once while it stays the same.
func (w *watcher) append(began time.Time, failure error) error {
	said := ""
	if failure != nil {
		said = usage.OneLine(failure)
	}
	if said != "" && said != w.failed {
		fmt.Fprintf(w.env.Stderr, "%s %s\n", clock(began), said)
	}
	w.failed = said
	if !w.at.Equal(began) {
		return nil
	}
	if w.form == string(target.FormText) {
		if _, err := fmt.Fprintf(w.env.Stdout, "-- %s\n", clock(began)); err != nil {
			return err
		}
	}
	if _, err := w.env.Stdout.Write(w.last); err != nil {
		return err
	}
	if !bytes.HasSuffix(w.last, []byte("\n")) {
		_, err := io.WriteString(w.env.Stdout, "\n")
		return err
	}
	return nil
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
