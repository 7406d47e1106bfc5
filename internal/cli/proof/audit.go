package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/audit"
	"amends/internal/broker"
	"amends/internal/cli/target"
	"amends/internal/phrase"
	"amends/internal/provision"
	"amends/internal/report"
	"amends/internal/store"
	"amends/internal/usage"
	"amends/internal/verify"
)

// auditFlags are those of audit.
type auditFlags struct {
	every     time.Duration
	fullEvery time.Duration
	once      bool
}

// Audit goes on verifying.
func Audit(e *target.Env) *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Short: "Keep verifying: what changed every few seconds, everything every hour",
		Long: `Extends an independent recomputation of the source record by record and compares every output that changed with the view, at
the present cut, without stopping anything. A full cycle recomputes everything from the source and compares the journal and
the output topic too. What is verified, and when, stays in the database: status shows its age, and the next audit goes on
from it. Something that differs is said in every cycle until a full one finds everything equal; the audit goes on.
With -once the code is that of the cycle's status, as for verify: PASS 0, INCOMPLETE 3, BLOCKED 4, DRIFT 5, UNAVAILABLE 6.`,
		Example: `  amends audit -manifest pipeline.json
  amends audit -manifest pipeline.json -once
  amends audit -manifest pipeline.json -once -full-every 0
  amends audit -manifest pipeline.json -every 1s -full-every 15m -o json | jq -c '[.status, .age_seconds]'`,
		Args: usage.NoArgs,
	}
	e.ManifestFlag(cmd)
	e.BrokersFlag(cmd)
	e.OutputFlag(cmd)
	cmd.Flags().DurationVar(&f.every, "every", audit.DefaultEvery, "`pause` between the starts of two cycles, more than 0")
	cmd.Flags().DurationVar(&f.fullEvery, "full-every", audit.DefaultFullEvery, "`pause` between the starts of two full cycles; 0 makes every cycle a full one")
	cmd.Flags().BoolVar(&f.once, "once", false, "one cycle, then end with its status's code")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), e) }
	return cmd
}

func (f *auditFlags) run(ctx context.Context, e *target.Env) error {
	asJSON, err := e.JSON()
	if err != nil {
		return err
	}
	if f.every <= 0 || f.fullEvery < 0 {
		return usage.Errorf("-every %v -full-every %v: more than 0, and 0 or more", f.every, f.fullEvery)
	}
	t, err := e.Target()
	if err != nil {
		return err
	}
	if t.Manifest.Output == nil {
		return verify.ErrUnbound
	}
	scale := t.Manifest.Config.QuantityScale
	opening, cancel := context.WithTimeout(ctx, target.GiveUp)
	defer cancel()
	s, err := e.Open(opening, t, target.ReadOnly)
	if errors.Is(err, store.ErrConfig) { // UNAVAILABLE (S10)
		c := &audit.Cycle{Report: verify.Refused(t.Manifest, true, false, err), Now: time.Now()}
		return errors.Join(write(e.Stdout, c, scale, asJSON), verdict(c, scale))
	}
	if err != nil {
		return err
	}
	defer s.Close()
	if err := provision.CheckBinding(opening, s.Namespace, t.Manifest); err != nil {
		return err
	}
	o := options(t, s)
	o.Every, o.FullEvery = f.every, f.fullEvery
	o.Logger = slog.New(slog.NewTextHandler(e.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	o.Told = func(c *audit.Cycle) { _ = write(e.Stdout, c, scale, asJSON) }
	if !f.once {
		if err := audit.New(o).Run(ctx); ctx.Err() == nil {
			return err
		}
		return nil // a signal: a clean stop
	}
	if err := e.Patiently(opening, "the broker", func() error { return answers(opening, s, t) }); err != nil {
		return err // a cycle has a budget of its own, up to an hour, for what it reads
	}
	c, err := audit.New(o).Once(ctx)
	if err == nil {
		err = write(e.Stdout, c, scale, asJSON)
	}
	if err == nil {
		err = verdict(c, scale)
	}
	return err
}

// answers fails while nobody can be asked about the source. Whatever else is wrong with the topics is the cycle's to judge.
func answers(ctx context.Context, s *target.Session, t *target.Target) error {
	if _, err := s.Admin.Topic(ctx, t.Manifest.SourceTopic); errors.Is(err, broker.ErrUnavailable) || ctx.Err() != nil {
		return fmt.Errorf("ask for the source: %w", err)
	}
	return nil
}

// verdict ends a command with the code of a cycle's status, nil for PASS.
func verdict(c *audit.Cycle, scale int32) error {
	if c.Status == verify.Pass {
		return nil
	}
	return &usage.Verdict{Text: "audit " + report.Headline(c.Report, scale), Code: c.Status.ExitCode()}
}

// Role returns the audit role of a process.
func Role(t *target.Target, s *target.Session, log *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		o := options(t, s)
		o.Logger = log
		return audit.New(o).Run(ctx)
	}
}

// options say how a target is audited.
func options(t *target.Target, s *target.Session) audit.Options {
	m := t.Manifest
	return audit.Options{Namespace: s.Namespace, Manifest: m, Topics: s.Admin, FullEvery: audit.DefaultFullEvery,
		Source: func() (verify.Reader, error) {
			return broker.NewReader(t.Broker, m.SourceTopic, m.Config.SourceIncarnation)
		},
		Output: func() (verify.Reader, error) { return broker.NewReader(t.Broker, m.Output.Topic, m.Output.Incarnation) }}
}

// line is the documented form of a cycle; members are only ever added.
type line struct {
	At time.Time `json:"at"`
	*report.JSON
	Full       bool       `json:"full"`
	Why        *string    `json:"why"`
	Keys       int64      `json:"keys"`
	VerifiedAt *time.Time `json:"verified_at"`
	Age        *float64   `json:"age_seconds"`
}

// write writes one cycle as one line; of text the status comes first, and quantities are at the namespace's scale.
func write(out io.Writer, c *audit.Cycle, scale int32, asJSON bool) error {
	l := line{At: c.Now, JSON: report.Of(c.Report), Full: c.Why != "", Keys: c.Keys}
	if l.Full {
		l.Why = &c.Why
	}
	age := "never verified"
	if !c.Verified.IsZero() {
		seconds := c.Now.Sub(c.Verified).Seconds()
		l.VerifiedAt, l.Age = &c.Verified, &seconds
		age = fmt.Sprintf("verified %.1f s ago", seconds)
	}
	if asJSON {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		return e.Encode(l)
	}
	how := "what changed"
	if l.Full {
		how = "everything, as " + c.Why
	}
	_, err := fmt.Fprintf(out, "%s  %s  compared %s: %s of %s, %.2f s; %s\n", report.Headline(c.Report, scale), c.Now.UTC().Format(time.RFC3339), how,
		phrase.Counted(c.Outputs, "output"), phrase.Counted(c.Keys, "key"), c.Elapsed.Seconds(), age)
	return err
}
