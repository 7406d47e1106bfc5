package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/broker"
	"amends/internal/cli/target"
	"amends/internal/progress"
	"amends/internal/provision"
	"amends/internal/report"
	"amends/internal/store"
	"amends/internal/usage"
	"amends/internal/verify"
)

func (a *app) verify() *cobra.Command {
	j := &verify.Job{}
	cmd := &cobra.Command{
		Short: "Recompute everything from the source and compare the view with it",
		Long: `An independent recomputation reads the complete source from the topic and is compared with every row of the view, in one
snapshot. Without -live it waits, within -timeout, until everything loaded before has reached the view. Neither stops a
worker, a relay or a view.
Status and code: PASS 0, INCOMPLETE 3, BLOCKED 4, DRIFT 5, UNAVAILABLE 6.`,
		Example: `  amends verify -manifest pipeline.json
  amends verify -manifest pipeline.json -live
  amends verify -manifest pipeline.json -deep -timeout 10m -o json`,
		Args: usage.NoArgs,
	}
	a.ManifestFlag(cmd)
	a.BrokersFlag(cmd)
	a.OutputFlag(cmd)
	f := cmd.Flags()
	f.BoolVar(&j.Live, "live", false, "compare at the present cut instead of waiting for everything loaded")
	f.BoolVar(&j.Deep, "deep", false, "also compare every journal row with its source record, and the output topic with both")
	f.DurationVar(&j.Timeout, "timeout", verify.DefaultTimeout, "`budget` for waiting, reading and comparing")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := a.JSON()
		if err != nil {
			return err
		}
		if j.Timeout <= 0 {
			return usage.Errorf("-timeout %v: more than 0", j.Timeout)
		}
		t, err := a.Target()
		if err != nil {
			return err
		}
		if t.Manifest.Output == nil {
			return verify.ErrUnbound
		}
		r, err := a.verifyTarget(cmd.Context(), t, j)
		if err != nil {
			return err
		}
		if asJSON {
			err = report.WriteJSON(a.Stdout, r)
		} else {
			err = report.Text(a.Stdout, r, t.Manifest.Config.QuantityScale)
		}
		if err == nil && r.Status != verify.Pass {
			err = &statusError{r, t.Manifest.Config.QuantityScale}
		}
		return err
	}
	return cmd
}

// verifyTarget runs one verification and records it where the database lets it.
func (a *app) verifyTarget(ctx context.Context, t *target.Target, j *verify.Job) (*verify.Report, error) {
	opening, cancel := context.WithTimeout(ctx, j.Timeout)
	defer cancel()
	s, err := a.Open(opening, t, target.ReadOnly)
	if errors.Is(err, store.ErrConfig) {
		return verify.Refused(t.Manifest, j.Live, j.Deep, err), nil
	}
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := provision.CheckBinding(opening, s.Namespace, t.Manifest); err != nil {
		return nil, err
	}
	return a.verifySession(ctx, t, s, j)
}

// verifySession verifies over an open session.
func (a *app) verifySession(ctx context.Context, t *target.Target, s *target.Session, j *verify.Job) (*verify.Report, error) {
	m := t.Manifest
	j.Manifest, j.Topics, j.Store = m, s.Admin, s.Namespace
	j.Source = func() (verify.Reader, error) {
		return broker.NewReader(t.Broker, m.SourceTopic, m.Config.SourceIncarnation)
	}
	j.Output = func() (verify.Reader, error) { return broker.NewReader(t.Broker, m.Output.Topic, m.Output.Incarnation) }
	j.Guard = func(ctx context.Context) (verify.Guard, error) {
		g, err := s.DB.GuardSource(ctx, m.Config.SourceIncarnation)
		if err != nil {
			return nil, err
		}
		return g, nil
	}
	bar := progress.On(a.Stderr, a.Getenv).Start("verify", "records", 0)
	j.Progress = func(done, total int64) {
		bar.SetTotal(total)
		bar.Set(done)
	}
	began := time.Now()
	r, err := j.Run(ctx)
	bar.Done()
	if err != nil {
		return nil, err
	}
	if err := s.Namespace.RecordVerification(ctx, report.Verification(r, m.Config.QuantityScale, began)); err != nil {
		fmt.Fprintf(a.Stderr, "the verification was not recorded: %v\n", err)
	}
	return r, nil
}
