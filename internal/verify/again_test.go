package verify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/pipelinetest"
	"amends/internal/store"
	"amends/internal/verify"
)

// changing answers for topics as they are, and from the given look on as change says.
type changing struct {
	verify.Topics
	topic  string
	from   int
	looks  int
	change func(*broker.Topic)
}

func (c *changing) Topic(ctx context.Context, name string) (broker.Topic, error) {
	t, err := c.Topics.Topic(ctx, name)
	if err == nil && name == c.topic {
		if c.looks++; c.looks >= c.from {
			c.change(&t)
		}
	}
	return t, err
}

// S10: identity, retention and starts of both topics are looked at again when everything was compared: what was read while one
// of them changed proves nothing.
func TestS10TopicsAreLookedAtAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*broker.Topic){
		"identity":   func(x *broker.Topic) { x.Incarnation = "kafka:ffffffffffffffffffffffffffffffff" },
		"retention":  func(x *broker.Topic) { x.RetentionMS = 1 },
		"start":      func(x *broker.Topic) { x.Start[0] = 1 },
		"partitions": func(x *broker.Topic) { x.Partitions++ },
	} {
		for _, side := range []struct {
			name  string
			topic func(*pipelinetest.World) string
			code  verify.Code
		}{
			{"source", func(w *pipelinetest.World) string { return w.Manifest.SourceTopic }, verify.SourceIdentity},
			{"output", func(w *pipelinetest.World) string { return w.Manifest.Output.Topic }, verify.OutputIdentity},
		} {
			t.Run(name+" of the "+side.name, func(t *testing.T) {
				t.Parallel()
				w := worked(t)
				calm := job(w)
				count := &changing{Topics: w.Admin, topic: side.topic(w), from: 1 << 30}
				calm.Topics = count
				want(t, run(t, calm), verify.Pass)
				j := job(w)
				j.Store = tampered{Snapshots: w.NS, row: on(at(ledger.Balance, 2), func(r *store.ViewRow) { r.Close = 51; redo(r) })}
				j.Topics = &changing{Topics: w.Admin, topic: side.topic(w), from: max(count.looks, 3), change: change}
				r := run(t, j)
				want(t, r, verify.Unavailable)
				if len(r.Reasons) != 1 || r.Reasons[0].Code != side.code || r.Differences != 0 || r.First != nil {
					t.Errorf("%+v, %d differences, first %+v", r.Reasons, r.Differences, r.First)
				}
			})
		}
	}
}

// S10: a history that cannot be read the second time, for the journal, is UNAVAILABLE; that the journal has rows of what could not
// be read is no difference.
func TestS10UnreadableForTheJournalIsNoDifference(t *testing.T) {
	t.Parallel()
	j := job(worked(t))
	j.Live, j.Deep = true, true
	source, opened := j.Source, 0
	j.Source = func() (verify.Reader, error) {
		r, err := source()
		if opened++; opened == 2 {
			r = unreadable{r}
		}
		return r, err
	}
	r := run(t, j)
	want(t, r, verify.Unavailable)
	if len(r.Reasons) != 1 || r.Reasons[0].Code != verify.HistoryUnreadable || !strings.HasPrefix(r.Reasons[0].Detail, "read source partition 0: ") ||
		r.Differences != 0 || r.First != nil {
		t.Errorf("%+v, %d differences, first %+v", r.Reasons, r.Differences, r.First)
	}
}

// S10: a source that ends below what was read of it has lost history, whatever is read at those offsets later: no verification and no
// cycle of an audit goes on from it, also where nothing is to be read.
func TestS10SourceThatWentBackIsUnavailable(t *testing.T) {
	t.Parallel()
	w, j, b := begun(t, pipelinetest.Before)
	back := &changing{Topics: w.Admin, topic: w.Manifest.SourceTopic, from: 1, change: func(x *broker.Topic) { x.End[0] = 2 }}
	j.Topics = back
	live := job(w)
	live.Live, live.Topics = true, back
	for _, r := range []*verify.Report{audited(t, j, b, false), audited(t, j, b, true), run(t, live)} {
		want(t, r, verify.Unavailable)
		if len(r.Reasons) != 1 || r.Reasons[0].Code != verify.HistoryTruncated || !strings.Contains(r.Reasons[0].Detail, "position 3 is not in the log 0..2: what had been read is gone") {
			t.Errorf("%+v", r.Reasons)
		}
	}
	j.Topics = w.Admin
	want(t, audited(t, j, b, false), verify.Pass)
}

// away answers once that nobody can be asked, and then not at all.
type away struct {
	verify.Topics
	asked int
}

func (a *away) Topic(ctx context.Context, name string) (broker.Topic, error) {
	if a.asked++; a.asked == 1 {
		return broker.Topic{}, fmt.Errorf("read topic %s: %w", name, broker.ErrUnavailable)
	}
	<-ctx.Done()
	return broker.Topic{}, fmt.Errorf("read topic %s: %w", name, ctx.Err())
}

// A budget that ends while the broker is asked again is told as what the budget was spent on.
func TestABrokerThatIsAwayIsNamedAndNotTheDeadline(t *testing.T) {
	t.Parallel()
	j := job(worked(t))
	j.Topics, j.Timeout = &away{Topics: j.Topics}, short
	if _, err := j.Run(t.Context()); !errors.Is(err, broker.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended with %v", err)
	}
}
