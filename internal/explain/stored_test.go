package explain_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"amends/internal/explain"
	"amends/internal/journal"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pace"
	"amends/internal/pgtest"
	"amends/internal/store"
	"amends/internal/store/postgres"
	"amends/internal/store/postgres/reader"
	"amends/internal/workload"
)

const incarnation = "kafka:00112233445566778899aabbccddeeff"

// stored is a world whose decisions are committed to a real database, one by one.
type stored struct {
	*world
	*testing.T
	namespace *postgres.Namespace
	conn      *pgx.Conn
	tokens    []store.Token
	leases    []store.Lease
	published []ledger.Sequence // by partition, the next
}

func newStored(t *testing.T, cfg *manifest.Config) *stored {
	t.Helper()
	ctx := context.Background()
	url := pgtest.New(t, pgtest.Fast)
	db, err := postgres.Open(ctx, postgres.Options{URL: url, AllowFsyncOff: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	s := &stored{world: newWorld(t, cfg), T: t}
	s.ok(db.Migrate(ctx))
	s.namespace, err = db.Init(ctx, cfg, "source")
	s.ok(err)
	s.ok(s.namespace.Bind(ctx, manifest.Output{Topic: "output", Incarnation: "kafka:ff112233445566778899aabbccddeeff", Partitions: cfg.Partitions}))
	s.conn, err = pgx.Connect(ctx, url)
	s.ok(err)
	t.Cleanup(func() { s.conn.Close(ctx) })
	for p := range ledger.Partition(cfg.Partitions) {
		o, err := s.namespace.Claim(ctx, p)
		s.ok(err)
		l, err := s.namespace.AcquireService(ctx, store.Relay, p, "relay", time.Hour)
		s.ok(err)
		s.tokens, s.leases = append(s.tokens, o.Token), append(s.leases, l)
	}
	s.published = make([]ledger.Sequence, cfg.Partitions)
	s.commit = func(b *ledger.Batch) { s.ok(s.namespace.Commit(ctx, s.tokens[b.Partition], b)) }
	return s
}

func (s *stored) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// publish writes a receipt for the next n outputs of a partition, gap offsets after the last.
func (s *stored) publish(p ledger.Partition, n, gap int64) {
	s.Helper()
	position, err := s.namespace.RelayPosition(context.Background(), p)
	s.ok(err)
	first := s.published[p]
	s.ok(s.namespace.Acknowledge(context.Background(), s.leases[p], store.Receipt{Partition: p, First: first, Next: first + ledger.Sequence(n),
		Offset: ledger.Offset(int64(position.Output) + gap)}))
	s.published[p] += ledger.Sequence(n)
}

// look runs fn on one snapshot.
func (s *stored) look(fn func(context.Context, *reader.Snapshot)) {
	s.Helper()
	s.ok(s.namespace.Look(context.Background(), func(from *reader.Snapshot) error {
		fn(context.Background(), from)
		return nil
	}))
}

func (s *stored) of(q explain.Question) (x *explain.Explanation) {
	s.Helper()
	s.look(func(ctx context.Context, from *reader.Snapshot) {
		var err error
		x, err = explain.Of(ctx, from, s.cfg, &q)
		s.ok(err)
	})
	return x
}

// committedAt returns when a record was committed.
func (s *stored) committedAt(p ledger.Partition, at ledger.Offset) (t time.Time) {
	s.Helper()
	s.ok(s.conn.QueryRow(context.Background(), "SELECT committed_at FROM amends.journal WHERE partition = $1 AND source_offset = $2", int32(p), int64(at)).Scan(&t))
	return t
}

// example is the worked example on one partition.
func example(t *testing.T) (*manifest.Config, []ledger.SourceRecord) {
	t.Helper()
	cfg, err := manifest.Default("demo", incarnation)
	if err != nil {
		t.Fatal(err)
	}
	key := ledger.StockKey{Item: "widget", Location: "berlin"}
	log, origin := workload.NewLog(cfg), cfg.LedgerOrigin
	active := func(txn string, revision ledger.Revision, day ledger.Day, kind ledger.Kind, n ledger.Quantity) ledger.SourceRecord {
		return log.Record(ledger.Assertion{Key: key, TxnID: txn, Revision: revision,
			Payload: ledger.Payload{State: ledger.Active, Day: day, Kind: kind, Quantity: n}})
	}
	return cfg, []ledger.SourceRecord{
		active("T-1", 1, origin, ledger.Receipt, 100), active("T-2", 1, origin+1, ledger.Issue, 20), active("T-3", 1, origin+2, ledger.Issue, 30),
		active("T-1", 2, origin, ledger.Receipt, 70),
		log.Record(ledger.Assertion{Key: key, TxnID: "T-3", Revision: 2, Payload: ledger.Payload{State: ledger.Cancelled}}),
	}
}

// I24 over the real rows: random histories, asked at every kind of point; the answer is the oracle's of that prefix.
// Shows I24.
func TestI24StoredHistoriesAddUp(t *testing.T) {
	t.Parallel()
	asked, blocked := 0, 0
	r := workload.NewRand(7)
	for seed := uint64(0); asked < pace.Of(200); seed++ {
		h := workload.NewHistory(workload.DefaultHistory(seed))
		cfg, err := h.Config("stored")
		if err != nil {
			t.Fatal(err)
		}
		s := newStored(t, cfg)
		type expected struct {
			explain.Question
			want    explain.Balance
			blocked bool
		}
		var questions []expected
		for _, rec := range h.Records {
			key := s.add(t, rec).Assertion.Key
			if key.Item == "" {
				continue
			}
			day, next := dayOf(r, cfg), ledger.Frontier(rec.Offset)+1
			e := expected{Question: explain.Question{Key: key, Day: day, Most: r.Below(12)}, want: s.want(key, day), blocked: s.oracle.Expected(key).Status.Blocked}
			e.At = &explain.Point{Offset: next, Partition: &rec.Partition}
			if r.Percent(30) {
				e.At = &explain.Point{Time: s.committedAt(rec.Partition, rec.Offset)}
			}
			questions = append(questions, e)
		}
		for _, e := range questions {
			asked++
			x := s.of(e.Question)
			total := x.Lines[len(x.Lines)-1].Total
			if x.Balance.Close != e.want.Close || x.Balance.Day != e.want.Day || total.Cmp(big.NewInt(e.want.Close)) != 0 || (x.Blocked != nil) != e.blocked {
				t.Fatalf("seed %d, %+v at %+v: balance %+v, sum %v, want %+v", seed, e.Question, *e.At, x.Balance, total, e.want)
			}
			if e.blocked {
				blocked++
			}
		}
	}
	if blocked < asked/50 {
		t.Errorf("%d of %d questions met a blocked key", blocked, asked)
	}
}

// SC40 by hand: the two causes of 01-02, and what 01-03 was before the correction.
func TestSC40CausesAndCoordinates(t *testing.T) {
	t.Parallel()
	cfg, records := example(t)
	s := newStored(t, cfg)
	for _, rec := range records {
		s.add(t, rec)
	}
	s.publish(0, 3, 0)
	s.publish(0, 4, 2) // sequences 3..6 lie at 5..8; the repair of the correction is published in part
	key := ledger.StockKey{Item: "widget", Location: "berlin"}
	x := s.of(explain.Question{Key: key, Day: cfg.LedgerOrigin + 1, Most: 10, Kinds: []ledger.OutputKind{ledger.Balance, ledger.Alert}})
	var got []string
	for _, v := range x.Versions {
		at, n := "not yet", "-"
		if v.Published != nil {
			at = fmt.Sprint(v.Published.Offset)
		}
		if change, ok := v.Cause.Change(); ok {
			n = change.String()
		}
		before := ledger.Revision(0)
		if v.Cause.Before != nil {
			before = v.Cause.Before.Revision
		}
		got = append(got, fmt.Sprintf("%v v%d %d/%d close %d, by %d/%d %s r%d -> r%d %s, sequence %d at %s", v.Output.Kind, v.Change.Version, v.Change.Previous, v.Threshold,
			v.Change.Close, v.Cause.Partition, v.Cause.Offset, v.Cause.Assertion.TxnID, before, v.Cause.Assertion.Revision, n, v.Sequence, at))
	}
	want := []string{
		"balance v1 0/0 close 80, by 0/1 T-2 r0 -> r1 -20, sequence 2 at 2",
		"balance v2 0/0 close 50, by 0/3 T-1 r1 -> r2 -30, sequence 6 at 8",
		"alert v1 70/60 close 50, by 0/3 T-1 r1 -> r2 -30, sequence 7 at not yet",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"opening_balance 0 = 0", "receipt 70 = 70", "issue -20 = 50"}, sums(x.Lines)); d != "" {
		t.Error(d)
	}
	at := explain.Point{Offset: 3}
	x = s.of(explain.Question{Key: key, Day: cfg.LedgerOrigin + 2, Most: 10, At: &at})
	if b := x.Balance; b.Close != 50 || !b.Alert || b.Previous != 80 || b.Version != 1 || x.Known.Frontier != 3 {
		t.Errorf("01-03 before the correction: %+v known at %+v", b, x.Known)
	}
	if d := cmp.Diff([]string{"opening_balance 0 = 0", "receipt 100 = 100", "issue -20 = 80", "issue -30 = 50"}, sums(x.Lines)); d != "" {
		t.Error(d)
	}
	for _, c := range []struct {
		at    explain.Point
		early bool
	}{{explain.Point{Offset: 9}, true}, {explain.Point{Offset: 5}, false}, {explain.Point{Time: time.Now().Add(time.Hour)}, true},
		{explain.Point{Time: s.committedAt(0, 4)}, false}} {
		if x = s.of(explain.Question{Key: key, At: &c.at}); x.Known.Early != c.early || x.Known.Frontier != 5 {
			t.Errorf("known at %+v: %+v, want early %v", c.at, x.Known, c.early)
		}
	}
}

// A decision bears the time at which it was written, and is seen once it is committed: until then a time that it may lie before has
// no final answer, while one that a later decision lies past has.
func TestATimeIsNotOverWhileACommitIsUnderWay(t *testing.T) {
	t.Parallel()
	cfg, records := example(t)
	s := newStored(t, cfg)
	for _, rec := range records {
		s.add(t, rec)
	}
	before, last := s.committedAt(0, 3), s.committedAt(0, 4)
	if !before.Before(last) {
		t.Fatalf("two decisions have the times %v and %v", before, last)
	}
	early := func(why string, at time.Time, frontier ledger.Frontier, want bool) {
		t.Helper()
		if x := s.of(explain.Question{Key: cfg.StockKeys[0].Key, At: &explain.Point{Time: at}}); x.Known.Early != want || x.Known.Frontier != frontier {
			t.Errorf("%s: %+v, want frontier %d, early %v", why, x.Known, frontier, want)
		}
	}
	early("nothing is under way", last, 5, false)
	for _, end := range []string{"ROLLBACK", "COMMIT"} {
		for _, statement := range []string{"BEGIN", "SELECT FROM amends.partitions WHERE partition = 0 FOR UPDATE", "UPDATE amends.partitions SET frontier = frontier WHERE partition = 0"} {
			_, err := s.conn.Exec(t.Context(), statement)
			s.ok(err)
			early("after "+statement, last, 5, statement != "BEGIN")
			early("long over, after "+statement, before, 4, false)
		}
		_, err := s.conn.Exec(t.Context(), end)
		s.ok(err)
		early("after "+end, last, 5, false)
	}
}

// S6: a key is frozen while a transaction is ambiguous, so the record that resolves it changes what was published before by the
// difference to the first candidate, and whatever else changed meanwhile is measured against the frozen state as well.
func TestChangeIsAgainstWhatWasPublishedBeforeTheBlock(t *testing.T) {
	t.Parallel()
	cfg, _ := example(t)
	log, origin := workload.NewLog(cfg), cfg.LedgerOrigin
	s := newStored(t, cfg)
	key := ledger.StockKey{Item: "widget", Location: "berlin"}
	for _, r := range []struct {
		txn      string
		revision ledger.Revision
		kind     ledger.Kind
		n        ledger.Quantity
	}{
		{"T-1", 1, ledger.Receipt, 10}, {"T-2", 1, ledger.Issue, 1},
		{"T-2", 1, ledger.Issue, 3},   // blocked: 9 stays published
		{"T-3", 1, ledger.Receipt, 4}, // while blocked: not published
		{"T-2", 2, ledger.Issue, 2},   // resolved: 10 - 2 + 4
		{"T-3", 2, ledger.Receipt, 5},
	} {
		s.add(t, log.Record(ledger.Assertion{Key: key, TxnID: r.txn, Revision: r.revision,
			Payload: ledger.Payload{State: ledger.Active, Day: origin, Kind: r.kind, Quantity: r.n}}))
	}
	x := s.of(explain.Question{Key: key, Most: 10})
	var got []string
	for _, v := range x.Versions {
		n, ok := v.Cause.Change()
		was := "nothing"
		if v.Cause.Was != nil {
			was = fmt.Sprintf("%d ambiguous=%v", v.Cause.Was.Payload.Quantity, v.Cause.Was.Ambiguous)
		}
		got = append(got, fmt.Sprintf("%v v%d close %d by %d: was %s, %v %v", v.Output.Kind, v.Change.Version, v.Change.Close, v.Cause.Offset, was, n, ok))
	}
	want := []string{
		"balance v1 close 10 by 0: was nothing, 10 true", "status v1 close 0 by 0: was nothing, 10 true", "balance v2 close 9 by 1: was nothing, -1 true",
		"status v2 close 0 by 2: was 1 ambiguous=false, 0 true",
		"balance v3 close 12 by 4: was 1 ambiguous=false, -1 true", "status v3 close 0 by 4: was 1 ambiguous=false, -1 true",
		"balance v4 close 13 by 5: was 4 ambiguous=false, 1 true",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// S7: a record after which the key is BLOCKED changes nothing of what is published, whatever blocks it; the record that ends that is
// measured against the frozen state.
func TestNothingChangesWhileTheKeyIsBlocked(t *testing.T) {
	t.Parallel()
	cfg, _ := example(t)
	log, origin := workload.NewLog(cfg), cfg.LedgerOrigin
	s := newStored(t, cfg)
	key := ledger.StockKey{Item: "widget", Location: "berlin"}
	for _, r := range []struct {
		txn      string
		revision ledger.Revision
		n        ledger.Quantity
	}{
		{"T-1", 1, 10},
		{"T-2", 1, math.MaxInt64},                    // does not fit beside 10
		{"T-1", 1, 11}, {"T-2", 2, 5}, {"T-3", 1, 1}, // ambiguous as well; then only that; then as before
		{"T-1", 2, 7}, // 7 + 5 + 1
	} {
		s.add(t, log.Record(ledger.Assertion{Key: key, TxnID: r.txn, Revision: r.revision,
			Payload: ledger.Payload{State: ledger.Active, Day: origin, Kind: ledger.Receipt, Quantity: r.n}}))
	}
	x := s.of(explain.Question{Key: key, Most: 10})
	var got []string
	for _, v := range x.Versions {
		n, ok := v.Cause.Change()
		got = append(got, fmt.Sprintf("%v v%d close %d by %d: %v %v frozen %v", v.Output.Kind, v.Change.Version, v.Change.Close, v.Cause.Offset, n, ok, v.Cause.Frozen))
	}
	want := []string{
		"balance v1 close 10 by 0: 10 true frozen false", "status v1 close 0 by 0: 10 true frozen false",
		"status v2 close 0 by 1: 0 true frozen true", // UNREPRESENTABLE
		"status v3 close 0 by 2: 0 true frozen true", // AMBIGUOUS, which is named alone
		"balance v2 close 13 by 5: -3 true frozen false", "status v4 close 0 by 5: -3 true frozen false",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	blocked := s.of(explain.Question{Key: key, Most: 10, At: &explain.Point{Offset: 2}}).Blocked
	if n, ok := blocked.Change(); !ok || n.Sign() != 0 || !blocked.Frozen {
		t.Errorf("the record that blocked the key changed %v %v", n, ok)
	}
}

func sums(lines []explain.Line) []string {
	var out []string
	for _, l := range lines {
		out = append(out, fmt.Sprintf("%s %v = %v", l.Kind, l.Amount, l.Total))
	}
	return out
}

// The points of a diff: an offset is what was decided, a time what was published, in part of a repair too.
func TestDifferenceOfWhatWasPublished(t *testing.T) {
	t.Parallel()
	cfg, records := example(t)
	s := newStored(t, cfg)
	moment := func() explain.Point {
		t.Helper()
		p := explain.Point{}
		s.ok(s.conn.QueryRow(context.Background(), "SELECT clock_timestamp()").Scan(&p.Time))
		return p
	}
	nothing := moment()
	for _, rec := range records {
		s.add(t, rec)
	}
	s.publish(0, 5, 0)
	before := moment()
	s.publish(0, 2, 0)
	part := moment()
	s.publish(0, 3, 0)
	repaired := moment()
	s.publish(0, 1, 0)
	whole := moment()
	key := ledger.StockKey{Item: "widget", Location: "berlin"}
	zero := ledger.Partition(0)
	differences := func(a, b explain.Point, one bool) (got []string) {
		s.look(func(ctx context.Context, from *reader.Snapshot) {
			var k *reader.StoredKey
			if one {
				found, err := explain.Find(ctx, from, cfg, key)
				s.ok(err)
				k = &found
			}
			spans, err := explain.Spans(ctx, from, [2]explain.Point{a, b}, k)
			s.ok(err)
			for _, span := range spans {
				s.ok(explain.Compare(ctx, from, cfg, span, k, func(d *explain.Difference) error {
					got = append(got, fmt.Sprintf("%v %v v%d %d -> v%d %d %v", d.Output.Kind, d.Output.Day, d.Before.Change.Version, d.Before.Change.Close,
						d.After.Change.Version, d.After.Change.Close, d.After.Change.Present))
					return nil
				}))
			}
		})
		return got
	}
	corrected := []string{"balance 2026-01-01 v1 100 -> v2 70 true", "balance 2026-01-02 v1 80 -> v2 50 true"}
	rest := []string{"alert 2026-01-02 v0 0 -> v1 50 true", "balance 2026-01-03 v1 50 -> v3 0 false", "alert 2026-01-03 v1 50 -> v2 0 false"}
	first := []string{"balance 2026-01-01 v0 0 -> v1 100 true", "balance 2026-01-02 v0 0 -> v1 80 true", "balance 2026-01-03 v0 0 -> v1 50 true",
		"alert 2026-01-03 v0 0 -> v1 50 true", "status - v0 0 -> v1 0 true"}
	for _, one := range []bool{true, false} {
		for _, c := range []struct {
			name string
			a, b explain.Point
			want []string
		}{
			{"before the first receipt", nothing, before, first},
			{"half a repair", before, part, corrected},
			{"the other half", part, repaired, []string{rest[0], "balance 2026-01-03 v1 50 -> v2 20 true", rest[2]}},
			{"the other half and the rest", part, whole, rest},
			{"in the other order", whole, part, rest},
			{"two offsets", explain.Point{Offset: 3, Partition: &zero}, explain.Point{Offset: 5, Partition: &zero}, append(slices.Clone(corrected), rest...)},
			{"an offset and a time", explain.Point{Offset: 3, Partition: &zero}, part, corrected},
			{"the same", whole, whole, nil},
		} {
			if d := cmp.Diff(c.want, differences(c.a, c.b, one)); d != "" {
				t.Errorf("%s (one key %v):\n%s", c.name, one, d)
			}
		}
	}
}

// A tail gives each version once, in order, also where a round is cut off.
func TestTailGivesEachVersionOnce(t *testing.T) {
	t.Parallel()
	cfg, records := example(t)
	s := newStored(t, cfg)
	var tail *explain.Tail
	var got []ledger.Sequence
	cut := 0
	round := func() error {
		return s.namespace.Look(context.Background(), func(from *reader.Snapshot) error {
			if tail == nil {
				var err error
				tail, err = explain.Start(context.Background(), from, cfg, nil, true)
				s.ok(err)
			}
			return tail.Round(context.Background(), from, func(v *explain.Version) error {
				if cut > 0 && v.Cause.Offset == 4 {
					return fs.ErrClosed
				}
				got = append(got, v.Sequence)
				return nil
			})
		})
	}
	s.ok(round())
	for i, rec := range records {
		s.add(t, rec)
		if i == 3 {
			continue // comes in one round with the next, which is cut off between them
		}
		if i == 4 {
			cut = 1
			if err := round(); err == nil {
				t.Fatal("the cut was not seen")
			}
			cut = 0
		}
		s.ok(round())
	}
	if d := cmp.Diff([]ledger.Sequence{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, got); d != "" {
		t.Error(d)
	}
	s.look(func(ctx context.Context, from *reader.Snapshot) {
		for _, c := range []struct {
			at   *explain.Point
			want int
		}{{nil, 0}, {&explain.Point{Offset: 4}, 1}, {&explain.Point{Time: s.committedAt(0, 2)}, 6}} {
			n := 0
			one, err := explain.Start(ctx, from, cfg, c.at, false)
			s.ok(err)
			s.ok(one.Round(ctx, from, func(*explain.Version) error { n++; return nil }))
			if n != c.want {
				t.Errorf("from %+v: %d versions, want %d", c.at, n, c.want)
			}
		}
	})
}

// A key that is not there is refused with those recorded that are spelled almost the same, in letters of any script.
func TestNoKeyNamesThoseSpelledAlmostTheSame(t *testing.T) {
	t.Parallel()
	cfg, err := manifest.New(manifest.Config{Namespace: "near", SourceIncarnation: incarnation, LedgerOrigin: example0, Partitions: 1, OpenKeys: &manifest.Terms{}})
	if err != nil {
		t.Fatal(err)
	}
	log, s := workload.NewLog(cfg), newStored(t, cfg)
	for _, key := range []ledger.StockKey{{Item: "\u00d6l", Location: "wien"}, {Item: "bolt", Location: "PARIS"}, {Item: "bolt", Location: "rome"}} {
		s.add(t, log.Record(ledger.Assertion{Key: key, TxnID: "T", Revision: 1, Payload: ledger.Payload{State: ledger.Active, Day: example0, Kind: ledger.Receipt, Quantity: 1}}))
	}
	for asked, want := range map[ledger.StockKey][]ledger.StockKey{
		{Item: "\u00d6L", Location: "Wien"}:       {{Item: "\u00d6l", Location: "wien"}},
		{Item: "\u00f6l", Location: "wien"}:       {{Item: "\u00d6l", Location: "wien"}},
		{Item: " Bolt ", Location: "Paris"}:       {{Item: "bolt", Location: "PARIS"}, {Item: "bolt", Location: "rome"}},
		{Item: "wien", Location: "\u00d6l"}:       {{Item: "\u00d6l", Location: "wien"}},
		{Item: "o\u0308l", Location: "elsewhere"}: nil,
	} {
		err := s.namespace.Look(context.Background(), func(from *reader.Snapshot) error {
			_, err := explain.Find(context.Background(), from, cfg, asked)
			return err
		})
		refused, ok := errors.AsType[*explain.NoKey](err)
		if !ok {
			t.Fatalf("%q: %v", asked, err)
		}
		if d := cmp.Diff(&explain.NoKey{Key: asked, Near: want, Configured: true}, refused); d != "" {
			t.Errorf("%q: %s", asked, d)
		}
	}
}

// many fills partition 0 with keys of one journal row each, by SQL, behind what is committed: a receipt of 1 on the origin.
func (s *stored) many(keys int) {
	s.Helper()
	ctx := context.Background()
	body := journal.AppendBody(nil, []ledger.Change{{Kind: ledger.Balance, Day: s.cfg.LedgerOrigin, Version: 1, Close: 1, Present: true},
		{Kind: ledger.TrustStatus, Version: 1, Present: true, Status: &ledger.Status{}}})
	at, sequence := int64(s.at[0].Frontier), int64(s.at[0].Sequence)
	for _, statement := range []string{
		`INSERT INTO amends.keys (namespace_id, partition, key_id, item, location)
		 SELECT namespace_id, 0, $1::bigint + n, convert_to('item ' || n, 'UTF8'), 'here' FROM amends.namespaces, generate_series(0, $2::bigint - 1) AS n WHERE $3::bigint >= 0 AND $4::bytea IS NOT NULL`,
		`INSERT INTO amends.journal (namespace_id, partition, source_offset, key_id, broker_ms, revision, quantity, sequence, day, outputs, state, kind, class, digest, txn_id, body)
		 SELECT namespace_id, 0, $1::bigint + n, $1::bigint + n, 0, 1, 1, $3::bigint + 2 * n, '2026-01-01', 2, 1, 1, 2, '\x00112233445566778899aabbccddeeff', 'T', $4::bytea
		 FROM amends.namespaces, generate_series(0, $2::bigint - 1) AS n`,
		`INSERT INTO amends.receipts (namespace_id, partition, first_sequence, next_sequence, output_offset, source_offset)
		 SELECT namespace_id, 0, $3::bigint + 100 * n, $3::bigint + 100 * n + 100, $3::bigint + 100 * n, $1::bigint + 50 * n
		 FROM amends.namespaces, generate_series(0, $2::bigint / 50 - 1) AS n WHERE $4::bytea IS NOT NULL`,
		`UPDATE amends.partitions SET frontier = $1::bigint + $2::bigint, next_sequence = $3::bigint + 2 * $2::bigint WHERE partition = 0 AND $4::bytea IS NOT NULL`,
		`UPDATE amends.relay_progress SET next_sequence = $3::bigint + 2 * $2::bigint, output_offset = $3::bigint + 2 * $2::bigint, source_offset = $1::bigint + $2::bigint - 1
		 WHERE partition = 0 AND $4::bytea IS NOT NULL`,
	} {
		_, err := s.conn.Exec(ctx, statement, at, int64(keys), sequence, body)
		s.ok(err)
	}
	_, err := s.conn.Exec(ctx, "ANALYZE")
	s.ok(err)
}

// plan returns how a statement is run for these values, and what it touched.
func (s *stored) plan(name string, values ...any) string {
	s.Helper()
	ctx := context.Background()
	for _, setting := range []string{"plan_cache_mode = force_generic_plan", "enable_seqscan = off", "enable_bitmapscan = off", "enable_hashjoin = off", "enable_mergejoin = off"} {
		_, err := s.conn.Exec(ctx, "SET "+setting)
		s.ok(err)
	}
	text, err := reader.Statements.ReadFile("sql/" + name + ".sql")
	s.ok(err)
	rows, err := s.conn.Query(ctx, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, BUFFERS OFF) "+string(text), values...)
	s.ok(err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	s.ok(err)
	return strings.Join(lines, "\n")
}
