package verify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
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

// resting is a broker that is away each time it is asked first.
type resting struct {
	verify.Topics
	asked *atomic.Int32
}

func (r resting) Stable(ctx context.Context, topic string) ([]ledger.Offset, error) {
	if r.asked.Add(1) == 1 {
		return nil, fmt.Errorf("list offsets of %s: %w", topic, broker.ErrUnavailable)
	}
	return r.Topics.Stable(ctx, topic)
}

// halting is a reader whose broker is away before its first record, and again behind the second.
type halting struct {
	verify.Reader
	asked *atomic.Int32
}

func (h halting) ReadTo(ctx context.Context, p ledger.Partition, from, end ledger.Frontier, fn func(ledger.SourceRecord) error) (ledger.Frontier, error) {
	away := fmt.Errorf("seek partition %d: %w", p, broker.ErrUnavailable)
	switch n := h.asked.Add(1); {
	case n == 1:
		return from, away
	case n == 2 && from+2 < end:
		at, err := h.Reader.ReadTo(ctx, p, from, from+2, fn)
		return min(at, from+2), errors.Join(away, err)
	}
	return h.Reader.ReadTo(ctx, p, from, end, fn)
}

// S12: a broker that is away for a moment is waited for within the budget, whatever it is asked for, and nothing is read twice.
func TestS12ABrokerThatComesBackIsWaitedFor(t *testing.T) {
	t.Parallel()
	modes(t, func(t *testing.T, set func(*verify.Job)) {
		w := worked(t)
		j := job(w)
		set(j)
		var stable, source, output atomic.Int32
		j.Topics = resting{j.Topics, &stable}
		for open, asked := range map[*func() (verify.Reader, error)]*atomic.Int32{&j.Source: &source, &j.Output: &output} {
			opened := *open
			*open = func() (verify.Reader, error) {
				r, err := opened()
				return halting{r, asked}, err
			}
		}
		r := run(t, j)
		want(t, r, verify.Pass)
		if r.SourceRecords != 5 {
			t.Errorf("%d source records", r.SourceRecords)
		}
		if source.Load() < 3 || j.Deep && output.Load() < 3 || !j.Live && stable.Load() < 2 {
			t.Errorf("it was not asked again: source %d, output %d, stable offsets %d times", source.Load(), output.Load(), stable.Load())
		}
	})
}
