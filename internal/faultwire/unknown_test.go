package faultwire_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/faultwire"
	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/worker"
)

// plain is a namespace of a case that is written out, with its proxy.
type plain struct {
	*cell
	*testing.T
}

// newPlain makes a bound namespace and a way to it through a proxy.
func newPlain(t *testing.T, d *database) *plain {
	t.Helper()
	ctx := t.Context()
	c := &cell{database: d, kind: &kind{}, cfg: d.config(), calls: map[string]int{}, proxy: faultwire.New(t, d.url)}
	c.topic = &topic{name: "output", incarnation: outputIncarnation(c)}
	p := &plain{cell: c, T: t}
	var err error
	c.direct, err = d.db.Init(ctx, c.cfg, "source")
	p.ok(err)
	p.ok(c.direct.Bind(ctx, c.output()))
	c.db = openDB(t, c.proxy.URL(), 4)
	t.Cleanup(c.db.Close)
	n, err := c.db.Namespace(ctx, c.cfg)
	p.ok(err)
	c.ns = &probe{Namespace: n, c: c}
	return p
}

func (p *plain) ok(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// exec changes what is stored of the namespace, as somebody else would; $1 is its id.
func (p *plain) exec(sql string) {
	p.Helper()
	var id int32
	p.ok(p.conn.QueryRow(p.Context(), "SELECT namespace_id FROM amends.namespaces WHERE namespace = $1", p.cfg.Namespace).Scan(&id))
	tag, err := p.conn.Exec(p.Context(), sql, id)
	p.ok(err)
	if tag.RowsAffected() != 1 {
		p.Fatalf("%s changed %d rows", sql, tag.RowsAffected())
	}
}

// away makes the database unreachable.
func (p *plain) away() {
	p.proxy.Refuse(true)
	p.proxy.Cut()
}

// outcome is what durable state says after an unknown commit.
type outcome struct {
	name   string
	action faultwire.Action
	// between happens after the lost reply and before the look.
	between func(p *plain)
	want    error // nil: the role goes on
}

// outcomes of a role whose row is named with its position and owner.
func outcomes(contradict, takeOver string, unresolved, integrity error) []outcome {
	nothing := func(*plain) {}
	return []outcome{
		{"committed", faultwire.CutAfter, nothing, nil},
		{"unchanged", faultwire.CutBefore, nothing, nil},
		{"contradictory", faultwire.CutBefore, func(p *plain) { p.exec(contradict) }, integrity},
		{"taken over", faultwire.CutAfter, func(p *plain) { p.exec(takeOver) }, store.ErrFence},
		{"unreadable", faultwire.CutAfter, (*plain).away, unresolved},
	}
}

// eachOutcome runs a role whose write loses its reply, with each fate of the write.
func eachOutcome(t *testing.T, commitOf string, all []outcome, run func(p *plain, between func()) error, check func(p *plain)) {
	d := newDatabase(t, server(t).New(), true, 4)
	for _, o := range all {
		t.Run(o.name, func(t *testing.T) {
			p := newPlain(t, d)
			p.ok(guarded(func() { published(p.cell) }))
			shot := p.proxy.Arm(o.action, 0, faultwire.CommitOf(commitOf))
			err := run(p, func() { o.between(p) })
			if !shot.Done() {
				t.Fatalf("no COMMIT of %s was met; the role ended with %v", commitOf, err)
			}
			if !errors.Is(err, o.want) || o.want == nil && err != nil {
				t.Fatalf("the role ended with %v, want %v", err, o.want)
			}
			if errors.Is(err, store.ErrCommitUnknown) && o.name != "unreadable" {
				t.Fatalf("still unknown: %v", err)
			}
			if o.want == nil {
				check(p)
			}
		})
	}
}

// interrupted calls between after each unknown outcome, before anybody can look.
type interrupted struct {
	*postgres.Namespace
	between func()
}

func (i *interrupted) after(err error) error {
	if errors.Is(err, store.ErrCommitUnknown) {
		i.between()
	}
	return err
}

func (i *interrupted) Commit(ctx context.Context, t store.Token, b *ledger.Batch) error {
	return i.after(i.Namespace.Commit(ctx, t, b))
}

func (i *interrupted) Acknowledge(ctx context.Context, l store.Lease, r store.Receipt) error {
	return i.after(i.Namespace.Acknowledge(ctx, l, r))
}

func (i *interrupted) ApplyViewInput(ctx context.Context, l store.Lease, page *store.ViewPage) error {
	return i.after(i.Namespace.ApplyViewInput(ctx, l, page))
}

// impatient ends a wait for a database that is away after a few pauses, as the end of the budget does.
func impatient() delivery.Pause {
	left := 5
	return func(ctx context.Context, d time.Duration) error {
		if left--; left == 0 {
			return context.DeadlineExceeded
		}
		return nil
	}
}

// S12: what a worker does after an unknown commit is what durable state says, and it retires where that contradicts what it
// knows or cannot be read.
// Shows F4, N6.
func TestS12UnknownCommitOfAWorker(t *testing.T) {
	all := outcomes("UPDATE amends.partitions SET frontier = 6 WHERE namespace_id = $1",
		"UPDATE amends.partitions SET epoch = epoch + 1 WHERE namespace_id = $1", worker.ErrUnresolved, worker.ErrIntegrity)
	eachOutcome(t, "move", all, func(p *plain, between func()) error {
		return work(p.cfg, &interrupted{p.ns.Namespace, between}, example, 7)
	}, func(p *plain) {
		o, err := p.direct.Observe(p.Context(), 0)
		p.ok(err)
		if o.Frontier != 7 || o.Sequence != 7 {
			p.Errorf("the partition ended at %d, sequence %d", o.Frontier, o.Sequence)
		}
	})
}

// S12: the same for a receipt.
// Shows F4, F10, N8.
func TestS12UnknownReceipt(t *testing.T) {
	all := outcomes("UPDATE amends.relay_progress SET output_offset = output_offset + 1 , next_sequence = next_sequence + 1 WHERE namespace_id = $1",
		"UPDATE amends.relay_progress SET term = term + 1 WHERE namespace_id = $1", delivery.ErrUnresolved, store.ErrIntegrity)
	eachOutcome(t, "acknowledge", all, func(p *plain, between func()) error {
		l, err := p.direct.AcquireService(p.Context(), store.Relay, 0, "holder", time.Hour)
		p.ok(err)
		s := delivery.NewRelayStepper(delivery.RelayOptions{Config: p.cfg, Store: &interrupted{p.ns.Namespace, between}, Topic: p.topic.delivery(),
			Serial: true, Pause: impatient()}, l)
		defer s.Close()
		return drive(p.Context(), s, func(pr delivery.Progress) bool { return pr.Idle })
	}, func(p *plain) {
		position, err := p.direct.RelayPosition(p.Context(), 0)
		p.ok(err)
		if n := len(p.topic.values()); n != 7 || position.Sequence != 7 || position.Output != 7 {
			p.Errorf("%d records published, the position is %+v", n, position)
		}
	})
}

// S12: the same for a page of the view.
// Shows F4, N8.
func TestS12UnknownViewCommit(t *testing.T) {
	all := outcomes("UPDATE amends.view_progress SET output_offset = output_offset + 1 WHERE namespace_id = $1",
		"UPDATE amends.view_progress SET term = term + 1 WHERE namespace_id = $1", delivery.ErrUnresolved, store.ErrIntegrity)
	eachOutcome(t, "move_view", all, func(p *plain, between func()) error {
		l, err := p.direct.AcquireService(p.Context(), store.View, 0, "holder", time.Hour)
		p.ok(err)
		s := delivery.NewViewStepper(delivery.ViewOptions{Config: p.cfg, Store: &interrupted{p.ns.Namespace, between}, Topic: p.topic.delivery(), Pause: impatient()}, l)
		defer s.Close()
		return drive(p.Context(), s, func(delivery.Progress) bool {
			v, err := p.direct.ViewPosition(p.Context(), 0)
			p.ok(err)
			return v.Output == 5
		})
	}, func(p *plain) {
		position, err := p.direct.ViewPosition(p.Context(), 0)
		p.ok(err)
		if position.Sequence != 5 || position.Stopped {
			p.Errorf("the position is %+v", position)
		}
	})
}

// S12: a claim whose reply was lost is the claimant's own if the row holds its nonce; otherwise a fresh one is made.
// Shows F4, N5.
func TestS12UnknownClaim(t *testing.T) {
	d := newDatabase(t, server(t).New(), true, 4)
	for name, want := range map[string]struct {
		action faultwire.Action
		epoch  ledger.Epoch
	}{"committed": {faultwire.CutAfter, 1}, "not committed": {faultwire.CutBefore, 1}, "committed late": {faultwire.Late, 1}} {
		t.Run(name, func(t *testing.T) {
			p := newPlain(t, d)
			shot := p.proxy.Arm(want.action, lag, faultwire.CommitOf("claim"))
			m := newMember(p.cfg, p.ns)
			_, err := m.join()
			p.ok(err)
			o, err := p.direct.Observe(t.Context(), 0)
			p.ok(err)
			if !shot.Done() || o.Token.Epoch != want.epoch {
				t.Errorf("epoch %d, want %d", o.Token.Epoch, want.epoch)
			}
		})
	}
}

// Backend terminated after a correction's writes and before COMMIT: nothing of it is durable, the worker finds that out
// and commits the same bytes once.
// Shows F1, N7.
func TestSC30BackendEndedBeforeTheCommitOfACorrection(t *testing.T) {
	d := newDatabase(t, server(t).New(), true, 4)
	p, undisturbed := newPlain(t, d), newPlain(t, d)
	p.ok(guarded(func() { p.worked(4); undisturbed.worked(5) }))
	shot := p.proxy.Arm(faultwire.Hold, 0, faultwire.CommitOf("advance"))
	terminated := make(chan error, 1)
	go func() {
		<-shot.Fired()
		var ended bool
		err := d.conn.QueryRow(context.Background(), "SELECT pg_terminate_backend($1, 10000)", shot.PID()).Scan(&ended)
		if err == nil && !ended {
			err = errors.New("the backend did not end")
		}
		terminated <- err
		shot.Release()
	}()
	p.ok(work(p.cfg, p.ns, example, 5))
	p.ok(<-terminated)
	if d := cmp.Diff(withoutSnapshots(undisturbed.dump(undisturbed.cfg.Namespace, true)), withoutSnapshots(p.dump(p.cfg.Namespace, true))); d != "" {
		t.Errorf("at the end:\n%s", d)
	}
}

// SC19: a worker with an old epoch commits nothing, also when its commit waited for the lock while the epoch changed.
// Shows F12, B6.
func TestSC19OldEpochAfterAWaitForTheLock(t *testing.T) {
	d := newDatabase(t, server(t).New(), true, 4)
	p := newPlain(t, d)
	p.ok(guarded(func() { p.worked(4) }))
	m := newMember(p.cfg, p.ns)
	_, err := m.join()
	p.ok(err)
	p.ok(m.life.Dispatch([]broker.Fetched{example[1].fetched(4)}, func(ledger.Partition, ledger.Frontier) {}))
	tx, err := d.conn.Begin(t.Context())
	p.ok(err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `UPDATE amends.partitions SET epoch = epoch + 1 WHERE namespace_id =
		(SELECT namespace_id FROM amends.namespaces WHERE namespace = $1)`, p.cfg.Namespace)
	p.ok(err)
	ended := make(chan error, 1)
	go func() { ended <- m.settle() }()
	d.awaitBlocked(t)
	p.ok(tx.Commit(t.Context()))
	if err := <-ended; !errors.Is(err, store.ErrFence) {
		t.Fatalf("got %v", err)
	}
	var rows int
	p.ok(d.conn.QueryRow(t.Context(), "SELECT count(*) FROM amends.journal").Scan(&rows))
	if rows != 4 {
		t.Errorf("%d journal rows, want the 4 from before", rows)
	}
}

// awaitBlocked waits until some backend of the database is blocked by another, and returns its process id.
func (d *database) awaitBlocked(t *testing.T) (pid int32) {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		err := d.conn.QueryRow(t.Context(), `SELECT coalesce(max(pid), 0) FROM pg_stat_activity
			WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`).Scan(&pid)
		if err != nil {
			t.Fatal(err)
		}
		if pid != 0 {
			return pid
		}
	}
	t.Fatal("nothing is blocked")
	return 0
}

// A guard that is lost stays lost: it is released when the server has seen the connection's end, busy until then, and never
// connected again behind its holder's back.
// Shows N10.
func TestS1GuardIsBusyUntilItsEndIsSeen(t *testing.T) {
	d := newDatabase(t, server(t).New(), true, 4)
	p := newPlain(t, d)
	g, err := p.db.GuardSource(t.Context(), p.cfg.SourceIncarnation)
	p.ok(err)
	p.ok(g.Check(t.Context()))
	seen := p.proxy.CutClients() // a network that broke: the server knows nothing of it
	opened := p.proxy.Opened()
	lost := func() {
		t.Helper()
		if err := g.Check(t.Context()); !errors.Is(err, store.ErrFence) {
			t.Fatalf("the lost guard says %v", err)
		}
	}
	lost()
	if _, err := d.db.GuardSource(t.Context(), p.cfg.SourceIncarnation); !errors.Is(err, store.ErrServiceBusy) {
		t.Fatalf("taken while the server still holds it: %v", err)
	}
	seen()
	var next *postgres.Guard
	for deadline := time.Now().Add(90 * time.Second); next == nil; time.Sleep(5 * time.Millisecond) {
		next, err = d.db.GuardSource(t.Context(), p.cfg.SourceIncarnation)
		if time.Now().After(deadline) {
			t.Fatalf("never free: %v", err)
		}
	}
	lost()
	p.ok(next.Release(t.Context()))
	lost()
	if p.proxy.Opened() != opened {
		t.Error("the lost guard connected again")
	}
	p.ok(g.Release(t.Context()))
}
