package drill

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// SC25: each role stopped by SIGTERM and started again while records stream resumes at the durable position; the code is 0.
func TestSC25RestartedRoles(t *testing.T) {
	t.Parallel()
	rng := choices(t)
	s := newSpace(t, shape{2, 3})
	f := s.fleet()
	st := s.stream(rng.Uint64(), 200)
	s.moves("the first records", shown, 0)
	var took []time.Duration
	for range size(t, killsEnv, 1, 1) {
		for _, role := range roles() {
			time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			took = append(took, f.stopOne(role))
			at := s.number(progress(role))
			f.moves(role, at)
		}
	}
	st.stop()
	found := s.check(st)
	s.undisturbed()
	f.stop()
	if found.duplicates != 0 {
		t.Errorf("%d duplicates at the topic", found.duplicates)
	}
	figure(t, "SIGTERM to the end: %s; %v", spread(took), found)
}

// deep writes the records of one key whose every correction of the first day changes the close of each of its days.
func deep(depth int) (records []*kgo.Record) {
	for d := range depth {
		records = append(records, movement(fmt.Sprintf("D-%d", d), 0, 0, 2, d))
	}
	return records
}

// correct is a correction of the first day of deep.
func correct(revision, quantity int) *kgo.Record {
	return &kgo.Record{Key: []byte(keyOf(0, 0)), Value: []byte(active("D-0", revision, 0, 0, "receipt", quantity, 0))}
}

// SC39: SIGTERM in the middle of large batches, for each role: what is in hand is finished or abandoned within the budget, the
// code is 0, and nothing is half done.
// Shows F17.
func TestSC39StoppedInLargeBatches(t *testing.T) {
	t.Parallel()
	rng := choices(t)
	depth, corrections := 2_000, 40
	if short() {
		depth = 500
	}
	s := newSpace(t, shape{1, 1})
	s.send(deep(depth)...)
	f := s.fleet()
	s.drained()
	var took []time.Duration
	revision := 2
	for _, role := range roles() {
		f.revive() // what was stopped before has its part in the work of the next
		var records []*kgo.Record
		for range corrections {
			records = append(records, correct(revision, 2+revision%7))
			revision++
		}
		at := s.number(progress(role))
		s.send(records...)
		s.moves(role+" is in the middle", progress(role), at)
		time.Sleep(time.Duration(rng.IntN(50)) * time.Millisecond)
		took = append(took, f.stopOne(role))
		s.wholeDecisions()
	}
	f.revive()
	found := s.check(nil)
	f.stop()
	if found.duplicates != 0 {
		t.Errorf("%d duplicates at the topic", found.duplicates)
	}
	if floor := depth * corrections; found.outputs < floor {
		t.Errorf("%d outputs, fewer than %d", found.outputs, floor)
	}
	figure(t, "SIGTERM to the end: %s; %v", spread(took), found)
}

// wholeDecisions checks that what is stored ends with a whole decision, and the view with a whole repair.
func (s *space) wholeDecisions() {
	s.t.Helper()
	got := s.one("SELECT coalesce(max(source_offset), -1) + 1 = (SELECT frontier FROM amends.partitions WHERE namespace_id = $NS AND partition = 0), " +
		"coalesce(sum(outputs), 0) = (SELECT next_sequence FROM amends.partitions WHERE namespace_id = $NS AND partition = 0), " +
		"(SELECT v.next_sequence IN (SELECT coalesce(sequence + outputs, 0) FROM amends.journal WHERE namespace_id = $NS UNION SELECT 0) FROM amends.view_progress v WHERE namespace_id = $NS AND partition = 0) " +
		"FROM amends.journal WHERE namespace_id = $NS AND partition = 0")
	if got != "t|t|t" {
		s.t.Errorf("frontier, sequence and view end with a whole decision: %s", got)
	}
}

// C1: a key with 50,000 movements; the cancellation of one on the first day is committed inside the budget, and its outputs are
// exactly the days whose close changes.
// Shows B9.
func TestC1LateCancellationOfALongHistory(t *testing.T) {
	t.Parallel()
	count, span := 50_000, 2_000
	if short() {
		count = 5_000
	}
	s := newSpace(t, shape{1, 1})
	var records []*kgo.Record
	for i := range count {
		records = append(records, movement(fmt.Sprintf("M-%d", i), 0, 0, 1+i%9, i*span/count))
	}
	for len(records) > 0 {
		n := min(len(records), 5_000)
		s.send(records[:n]...)
		records = records[n:]
	}
	p := s.start("run -manifest pipeline.json")
	s.drained()
	p.stop()
	p = s.start("run -manifest pipeline.json") // the history is loaded again
	s.send(&kgo.Record{Key: []byte(keyOf(0, 0)), Value: []byte(cancelled("M-0", 2, 0, 0))})
	began := time.Now()
	s.drained()
	took := time.Since(began)
	// Every day from the first on has a movement, and each of its closes falls by the quantity that is gone.
	if got := s.one("SELECT outputs FROM amends.journal WHERE namespace_id = $NS AND source_offset = " + fmt.Sprint(count)); got != fmt.Sprint(span) {
		t.Errorf("%s outputs, want %d", got, span)
	}
	found := s.check(nil)
	p.stop()
	figure(t, "%d movements of one key, a cancellation on its first day: %d outputs at the view %.1f s after it, a fresh process included; %v", count, span, took.Seconds(), found)
}

// C2: a worker is killed in the middle of a very large repair, five times: each start commits the whole repair or nothing, it
// fits the budget, and the next start goes on. (Nothing is kept of an attempt, and none is needed.)
// Shows F1, B10.
func TestC2KilledInALargeRepair(t *testing.T) {
	t.Parallel()
	rng := choices(t)
	depth := 15_000
	if short() {
		depth = 2_000
	}
	s := newSpace(t, shape{1, 1})
	s.send(deep(depth)...)
	f := s.fleet()
	s.drained()
	before := s.number(emitted)
	l := s.holdBy("LOCK TABLE amends.journal IN EXCLUSIVE MODE") // a claim needs the partition's row alone
	s.send(correct(2, 50))
	for range 5 {
		l.waiting() // the repair is decided and sent, and cannot be written
		time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
		f.running["source"].Kill() // its backend goes on waiting with the row locked: the next claim ends it
		epoch := s.number(ownerships)
		f.revive()
		s.moves("a claim", ownerships, epoch)
		if now := s.number(emitted); now != before {
			t.Fatalf("%d outputs of a killed attempt", now-before)
		}
	}
	l.release()
	began := time.Now()
	s.moves("the repair", emitted, before)
	if got := s.number(emitted) - before; got != int64(depth) {
		t.Errorf("%d outputs, want %d", got, depth)
	}
	took := time.Since(began)
	found := s.check(nil)
	f.stop()
	figure(t, "5 kills before a repair of %d outputs; the last start committed it %.1f s after its commit was let through; %v", depth, took.Seconds(), found)
}
