package operate

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/broker"
	"amends/internal/cli/target"
	"amends/internal/cli/watch"
	"amends/internal/health"
	"amends/internal/inspect"
	"amends/internal/provision"
	"amends/internal/usage"
)

// blockedMost bounds -blocked.
const blockedMost = 1000

// Status says whether a namespace is healthy.
func Status(e *target.Env) *cobra.Command {
	maxLag, blocked := health.DefaultMaxLag, 10
	cmd := &cobra.Command{
		Short: "Say whether everything is well, in the first line and in the code",
		Long: `The first line is the answer: OK or what is wrong, then the lag in records and by the age of the oldest unprocessed record,
what waits in the outbox, blocked keys, quarantined records, and the last verification with its age. Then one row a
partition, what stopped it, and which keys are blocked, since when, by which record and why.
The code is the first that applies: 11 a partition stopped, 5 the last verification was DRIFT, 4 a key is blocked, 3 the
oldest pending work waits longer than -max-lag, 0. An old or missing verification is shown and changes nothing.
The database is needed; without the broker the lag is shown as unknown.`,
		Example: `  amends status -manifest pipeline.json
  amends status -manifest pipeline.json -max-lag 1m -o json | jq .state`,
		Args: usage.NoArgs,
	}
	e.ManifestFlag(cmd)
	e.BrokersFlag(cmd)
	e.OutputFlag(cmd)
	cmd.Flags().DurationVar(&maxLag, "max-lag", maxLag, "how `long` work may wait before the answer is LATE")
	cmd.Flags().IntVar(&blocked, "blocked", blocked, "list at most that `many` blocked keys, 0..1000")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := e.JSON()
		if err != nil {
			return err
		}
		if maxLag < 0 {
			return usage.Errorf("-max-lag %v: 0 or more", maxLag)
		}
		if blocked < 0 || blocked > blockedMost {
			return usage.Errorf("-blocked %d: 0..%d", blocked, blockedMost)
		}
		p, err := progress(cmd.Context(), e, blocked)
		if err != nil {
			return err
		}
		s := health.Judge(p, maxLag)
		if asJSON {
			err = inspect.WriteJSON(e.Stdout, s)
		} else {
			err = inspect.StatusText(e.Stdout, s)
		}
		if err == nil && s.Code != 0 {
			err = &usage.Verdict{Text: "status " + string(s.State) + ": " + s.Why, Code: s.Code}
		}
		return err
	}
	return watch.Wrap(e, cmd)
}

// progress opens what the flags name and reads its progress.
func progress(ctx context.Context, e *target.Env, blocked int) (*health.Progress, error) {
	var p *health.Progress
	err := opened(ctx, e, func(t *target.Target, s *target.Session) (err error) {
		look := &health.Look{Namespace: s.Namespace, Manifest: t.Manifest, Topic: topic(t, s.Admin), Blocked: blocked}
		p, err = look.Read(ctx)
		return err
	})
	return p, err
}

// opened opens the namespace that the flags name, for reading.
func opened(ctx context.Context, e *target.Env, use func(*target.Target, *target.Session) error) error {
	t, err := e.Target()
	if err != nil {
		return err
	}
	opening, cancel := context.WithTimeout(ctx, target.GiveUp)
	defer cancel()
	s, err := e.Open(opening, t, target.ReadOnly)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := provision.CheckBinding(opening, s.Namespace, t.Manifest); err != nil {
		return err
	}
	return use(t, s)
}

// requestTimeout is how long one question to the broker may take: an answer without the broker must not be late.
const requestTimeout = 3 * time.Second

// topic says how to ask the source topic.
func topic(t *target.Target, admin *broker.Admin) *health.Topic {
	o := t.Broker
	o.RequestTimeout = requestTimeout
	m := t.Manifest
	return &health.Topic{Admin: admin, Name: m.SourceTopic, Incarnation: m.Config.SourceIncarnation,
		Reader: func() (*broker.Reader, error) { return broker.NewReader(o, m.SourceTopic, m.Config.SourceIncarnation) }}
}
