package audit_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"amends/internal/audit"
	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/pipelinetest"
	"amends/internal/report"
	"amends/internal/verify"
)

// S10: an audit extends the verified cut, keeps it in the database with its time, and goes on from it in another process:
// there only what is new is read and compared.
func TestS10AuditGoesOnInAnotherProcess(t *testing.T) {
	t.Parallel()
	w := begun(t)
	var read int64
	c := w.once(w.options(&read))
	w.is(c, verify.Pass, "partition 0 has no saved state")
	if read != 6 { // twice: a full cycle is a deep one
		t.Errorf("%d records read", read)
	}
	first := w.state()
	if p := first.Partitions[0]; len(first.Partitions) != 2 || p.Frontier != 3 || p.Sequence != 5 || p.Cause != 2 || p.Status != "PASS" ||
		p.Verified.IsZero() || p.Full.IsZero() || p.Saved == nil || p.Saved.Frontier != 3 {
		t.Fatalf("%+v", first)
	}
	w.load(pipelinetest.Correction...)
	w.settled()
	read = 0
	c = w.once(w.options(&read))
	w.is(c, verify.Pass, "")
	if read != 1 || c.Outputs != 5 || c.Keys != 1 || c.SourceRecords != 4 {
		t.Errorf("%d records read, %d outputs of %d keys compared, %d records in all", read, c.Outputs, c.Keys, c.SourceRecords)
	}
	second := w.state()
	if p, was := second.Partitions[0], first.Partitions[0]; p.Frontier != 4 || p.Sequence != 10 || !p.Verified.After(was.Verified) || !p.Full.Equal(was.Full) || p.Saved.Frontier != 4 {
		t.Errorf("%+v", p)
	}
	if c.Verified.IsZero() || c.Now.Before(c.Verified) || c.Now.Sub(c.Verified) > time.Minute {
		t.Errorf("verified %v, now %v", c.Verified, c.Now)
	}
	read = 0
	if c = w.once(w.options(&read)); c.Status != verify.Pass || read != 0 || c.Outputs != 0 {
		t.Errorf("nothing is new: %d read, %d compared, %s", read, c.Outputs, c.Status)
	}
	// Of these cycles only the full one changed the status: one verification is recorded.
	var n int
	w.ok(w.conn.QueryRow(t.Context(), "SELECT count(*) FROM amends.verifications WHERE audit AND status = 'PASS' AND deep AND keys = 1").Scan(&n))
	if n != 1 {
		t.Errorf("%d verifications recorded", n)
	}
}

// S10: a saved state that is missing, damaged or of another format costs a full cycle, which says so; nothing else.
func TestS10AuditWithoutItsStateRecomputesEverything(t *testing.T) {
	t.Parallel()
	w := begun(t)
	w.once(w.options(nil))
	for _, c := range []struct{ sql, why string }{
		{"UPDATE amends.audit_chunks SET data = set_byte(data, 3, get_byte(data, 3) # 1) WHERE partition = 0", "partition 0: the saved state cannot be used: its checksum is not that of"},
		{"DELETE FROM amends.audit_chunks WHERE partition = 1", "partition 1: the saved state cannot be used: its checksum is not that of its 0 bytes"},
		{"UPDATE amends.audit_state SET state_format = 99 WHERE partition = 0", "partition 0: the saved state cannot be used: format 99, this binary has 1"},
		{"UPDATE amends.audit_state SET state_format = NULL, state_chunks = NULL, state_frontier = NULL, state_checksum = NULL WHERE partition = 1", "partition 1 has no saved state"},
		{"UPDATE amends.audit_state SET frontier = 2 WHERE partition = 0", "the saved state is past the verified cut"},
		{"DELETE FROM amends.audit_state WHERE partition = 1", "partition 1 has no saved state"},
		{"UPDATE amends.audit_state SET system_identifier = NULL, timeline = NULL WHERE partition = 1", "partition 1: the saved state cannot be used: it does not say which server was verified"},
		{"UPDATE amends.audit_state SET timeline = timeline + 1 WHERE partition = 1", "partition 1: the database is another server or timeline than at the verified cut"},
		{"UPDATE amends.audit_state SET system_identifier = system_identifier # 1 WHERE partition = 0", "partition 0: the database is another server or timeline than at the verified cut"},
		{"UPDATE amends.audit_state SET frontier = 99 WHERE partition = 0", "partition 0: a position is below the verified cut"},
		{"UPDATE amends.audit_state SET status = 'INCOMPLETE' WHERE partition = 1", "the last cycle before this process ended INCOMPLETE"},
		{"UPDATE amends.audit_state SET full_at = full_at - interval '1 hour' WHERE partition IN (0, 1)", "it is due"},
	} {
		rows := int64(1)
		if strings.Contains(c.sql, "IN (0, 1)") {
			rows = 2
		}
		w.exec(rows, c.sql)
		var read int64
		got := w.once(w.options(&read))
		if got.Status != verify.Pass || !strings.Contains(got.Why, c.why) || read != 6 {
			t.Errorf("%s: %s, full because %q, want %q; %d read", c.sql, got.Status, got.Why, c.why, read)
		}
		w.is(w.once(w.options(nil)), verify.Pass, "")
	}
}

// SC35, C28: a tampered row that nothing changes is found by the next full cycle, named with key, day, expected and actual;
// DRIFT is said in every cycle until a full one finds everything equal, and the audit goes on.
func TestSC35C28TamperedRowIsFoundByAFullCycle(t *testing.T) {
	t.Parallel()
	w := begun(t)
	w.once(w.options(nil))
	w.exec(1, "UPDATE amends.view_rows SET close = 81 WHERE close = 80 AND kind = 1")
	w.load(receipt("widget", "T-4", 1, 5, 1))
	w.settled()
	w.is(w.once(w.options(nil)), verify.Pass, "") // it is not among what changed
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var mu sync.Mutex
	var cycles []*audit.Cycle
	drift := func(n int) {
		t.Helper()
		for {
			mu.Lock()
			seen := len(cycles)
			last := append([]*audit.Cycle{}, cycles...)
			mu.Unlock()
			if seen >= n {
				cycles = nil
				for i, c := range last[:n] {
					if c.Status != verify.Drift || c.Differences != 1 || c.First.ID.Key.Item != "widget" || c.First.ID.Day.String() != "2026-01-02" ||
						c.First.Expected.Payload.Close != 80 || c.First.Actual.Payload.Close != 81 || c.First.Expected.Sources[0].TxnID != "T-2" {
						t.Errorf("cycle %d: %s, first %+v", i, c.Status, c.First)
					}
				}
				return
			}
			select {
			case <-ctx.Done():
				t.Fatalf("%d cycles: %v", seen, ctx.Err())
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	o := w.options(nil)
	o.Every = 20 * time.Millisecond
	w.exec(2, "UPDATE amends.audit_state SET full_at = full_at - interval '1 hour'") // a full cycle is due, once
	o.Told = func(c *audit.Cycle) {
		mu.Lock()
		defer mu.Unlock()
		cycles = append(cycles, c)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- audit.New(o).Run(running) }()
	drift(3)
	if p := w.state().Partitions[0]; p.Status != "DRIFT" || p.Differences != 1 || p.Frontier != 4 || !strings.Contains(p.Detail, "balance") {
		t.Errorf("%+v", p)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	c := w.once(w.options(nil))
	w.is(c, verify.Drift, "the last cycle before this process ended DRIFT")
	w.exec(1, "UPDATE amends.view_rows SET close = 80 WHERE close = 81 AND kind = 1")
	w.is(w.once(w.options(nil)), verify.Pass, "the last cycle before this process ended DRIFT")
	w.is(w.once(w.options(nil)), verify.Pass, "")
}

// S10, SC35: where a verification found a difference, the next cycle is a full one and finds it too, in the process that runs and
// in the next; once a full one finds everything equal, what changed is enough again.
func TestSC35AuditLooksAtWhatAVerificationFound(t *testing.T) {
	t.Parallel()
	w := begun(t)
	running := audit.New(w.options(nil))
	w.next(running, verify.Pass, "partition 0 has no saved state")
	w.exec(1, "UPDATE amends.view_rows SET close = 81 WHERE close = 80 AND kind = 1")
	w.next(running, verify.Pass, "") // nobody knows yet
	verified := func(want verify.Status) {
		t.Helper()
		began, r := time.Now(), w.deep()
		if r.Status != want {
			t.Fatalf("%s %v", r.Status, r.First)
		}
		w.ok(w.ns.RecordVerification(t.Context(), report.Verification(r, 0, began)))
	}
	verified(verify.Drift)
	w.exec(1, "UPDATE amends.view_rows SET close = 80 WHERE close = 81 AND kind = 1")
	w.next(running, verify.Pass, "the last verification found a difference") // it was mended
	w.next(running, verify.Pass, "")
	w.exec(1, "UPDATE amends.view_rows SET close = 81 WHERE close = 80 AND kind = 1")
	verified(verify.Drift)
	w.is(w.once(w.options(nil)), verify.Drift, "the last verification found a difference")
	w.exec(1, "UPDATE amends.view_rows SET close = 80 WHERE close = 81 AND kind = 1")
	w.is(w.once(w.options(nil)), verify.Pass, "the last cycle before this process ended DRIFT")
	w.is(w.once(w.options(nil)), verify.Pass, "")
}

// S10, SC35: a verification finds a difference while a full cycle runs on a snapshot that is older than it. The cycle's answer does not
// outweigh that one: the next cycle is a full one and finds it, in the process that runs and in the next.
func TestSC35AuditDoesNotOutweighWhatAVerificationFoundMeanwhile(t *testing.T) {
	t.Parallel()
	w := begun(t)
	w.once(w.options(nil))
	for _, next := range []func(o audit.Options, running *audit.Auditor) *audit.Auditor{
		func(_ audit.Options, running *audit.Auditor) *audit.Auditor { return running },
		func(o audit.Options, _ *audit.Auditor) *audit.Auditor { return audit.New(o) },
	} {
		o, found := w.options(nil), false
		output := o.Output
		o.Output = func() (verify.Reader, error) { // a full cycle opens it in its snapshot
			if !found {
				found = true
				w.exec(1, "UPDATE amends.view_rows SET close = 81 WHERE close = 80 AND kind = 1")
				r := w.deep()
				if r.Status != verify.Drift {
					t.Errorf("%s", r.Status)
				}
				w.ok(w.ns.RecordVerification(t.Context(), report.Verification(r, 0, time.Now())))
			}
			return output()
		}
		w.exec(2, "UPDATE amends.audit_state SET full_at = full_at - interval '1 hour'")
		running := audit.New(o)
		w.next(running, verify.Pass, "it is due")
		if got := w.says(); got != "DRIFT" {
			t.Errorf("the last verification says %s", got)
		}
		w.next(next(o, running), verify.Drift, "the last verification found a difference")
		w.exec(1, "UPDATE amends.view_rows SET close = 80 WHERE close = 81 AND kind = 1")
		w.is(w.once(w.options(nil)), verify.Pass, "the last cycle before this process ended DRIFT")
	}
}

// unreadable is a source that cannot be read from its start while is says so.
type unreadable struct {
	verify.Reader
	is *bool
}

func (u unreadable) ReadTo(ctx context.Context, p ledger.Partition, from, end ledger.Frontier, fn func(ledger.SourceRecord) error) (ledger.Frontier, error) {
	if *u.is && from == 0 {
		return 0, broker.ErrUnreadable
	}
	return u.Reader.ReadTo(ctx, p, from, end, fn)
}

// S10: after a full cycle that ended UNAVAILABLE every cycle is a full one until the history can be read again, with a state to go
// on from and without one: what changed alone would say PASS over a history that nobody can read.
func TestS10AuditStaysUnavailableUntilAFullCycleIsNot(t *testing.T) {
	t.Parallel()
	w := begun(t)
	for _, why := range []string{"partition 0 has no saved state", "it is due"} {
		broken := true
		o := w.options(nil)
		source := o.Source
		o.Source = func() (verify.Reader, error) {
			r, err := source()
			return unreadable{r, &broken}, err
		}
		running := audit.New(o)
		w.next(running, verify.Unavailable, why)
		w.next(running, verify.Unavailable, why)
		broken = false
		w.next(running, verify.Pass, why)
		w.next(running, verify.Pass, "")
		w.exec(2, "UPDATE amends.audit_state SET full_at = full_at - interval '1 hour'")
	}
}

// shortened is a source topic that has lost its last record while is says so.
type shortened struct {
	verify.Topics
	is *bool
}

func (s shortened) Topic(ctx context.Context, name string) (broker.Topic, error) {
	t, err := s.Topics.Topic(ctx, name)
	if *s.is && name == "source" {
		t.End[0]--
	}
	return t, err
}

// S10: after any cycle that ended UNAVAILABLE the next is a full one: the records at the offsets that were lost are others by now.
func TestS10AuditRecomputesAfterASourceThatWentBack(t *testing.T) {
	t.Parallel()
	w := begun(t)
	back := false
	o := w.options(nil)
	o.Topics = shortened{o.Topics, &back}
	running := audit.New(o)
	w.next(running, verify.Pass, "partition 0 has no saved state")
	back = true
	w.next(running, verify.Unavailable, "")
	back = false
	w.next(running, verify.Pass, "the last cycle ended UNAVAILABLE")
	w.next(running, verify.Pass, "")
}

// SC35: live verifications and the cycles of an audit, one after the other under load: each PASS at its cut, never a false
// DRIFT, and the verified cut follows the load.
func TestSC35NoFalseDriftUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, loadConfig)
	w.start()
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() { w.keepLoading(ctx) })
	o := w.options(nil)
	o.Every = 200 * time.Millisecond
	var mu sync.Mutex
	var full, changed, verified int
	var compared int64
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return full >= 2 && changed >= 3 && compared >= 500 && verified >= 5
	}
	o.Told = func(c *audit.Cycle) {
		mu.Lock()
		defer mu.Unlock()
		if c.Status != verify.Pass {
			t.Errorf("audit: %s %v, first %+v", c.Status, c.Reasons, c.First)
		}
		if c.Why != "" {
			full++
		} else {
			changed++
			compared += c.Outputs
		}
	}
	audited := make(chan error, 1)
	go func() { audited <- w.auditByRounds(ctx, o) }()
	for began, n := time.Now(), 0; time.Since(began) < 8*time.Second || !enough() && time.Since(began) < 2*patience; n++ {
		j := w.job()
		j.Deep = n%4 == 3
		r, err := j.Run(t.Context())
		if err != nil || r.Status != verify.Pass {
			t.Fatalf("verify %+v, %v", r, err)
		}
		mu.Lock()
		verified++
		mu.Unlock()
	}
	cancel()
	load.Wait()
	if err := <-audited; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.settled()
	c := w.once(w.options(nil))
	if c.Status != verify.Pass {
		t.Errorf("%s, first %+v", c.Status, c.First)
	}
	var records, outputs int64
	w.ok(w.conn.QueryRow(t.Context(), "SELECT sum(frontier), sum(next_sequence) FROM amends.partitions").Scan(&records, &outputs))
	t.Logf("%d records, %d outputs; %d live verifications; %d full cycles, %d others that compared %d outputs", records, outputs, verified, full, changed, compared)
	if !enough() || records < 1000 {
		t.Error("too little happened")
	}
}

// auditByRounds runs audits one after the other until ctx ends: each begins with a full cycle, because none was made yet or the last
// one is made an hour old, and ends after two others. However long a full one takes on this machine, others come between.
func (w *world) auditByRounds(ctx context.Context, o audit.Options) error {
	for {
		running, next := context.WithCancel(ctx)
		round, others := o, 0
		round.Told = func(c *audit.Cycle) {
			o.Told(c)
			if c.Why != "" {
				return
			}
			if others++; others == 2 {
				next()
			}
		}
		err := audit.New(round).Run(running)
		next()
		if ctx.Err() != nil || !errors.Is(err, context.Canceled) {
			return err
		}
		if _, err := w.conn.Exec(context.WithoutCancel(ctx), "UPDATE amends.audit_state SET full_at = full_at - interval '1 hour'"); err != nil {
			return err
		}
	}
}

// What is found is told and counts, also where the database does not let it be recorded.
func TestS10AuditTellsWhatItCannotRecord(t *testing.T) {
	t.Parallel()
	w := begun(t)
	w.exec(1, "UPDATE amends.view_rows SET close = 81 WHERE close = 80 AND kind = 1")
	_, err := w.conn.Exec(t.Context(), "ALTER TABLE amends.audit_state ADD CONSTRAINT nothing CHECK (false)")
	w.ok(err)
	c := w.once(w.options(nil))
	w.is(c, verify.Drift, "partition 0 has no saved state")
	if !c.Verified.IsZero() || c.Now.IsZero() || len(w.state().Partitions) != 0 {
		t.Errorf("verified %v, now %v", c.Verified, c.Now)
	}
}
