package view_test

import (
	"encoding/json"
	"math/rand"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/view"
	"amends/internal/wire"
)

func TestSC28WorkedExampleInEveryCut(t *testing.T) {
	records := worked(t)
	want := []string{
		"widget - status v1 0",
		"widget 2026-01-01 balance v2 70",
		"widget 2026-01-02 alert v1 50",
		"widget 2026-01-02 balance v2 50",
		"widget 2026-01-03 alert v2 withdrawn",
		"widget 2026-01-03 balance v3 withdrawn",
	}
	for cuts := range 1 << 10 {
		for _, restart := range []func(int) bool{never, always} {
			s := run(t, records, 1+cuts%12, func(i int) bool { return cuts>>i&1 == 1 }, restart)
			if d := gocmp.Diff(want, s.show()); d != "" || s.stop != nil {
				t.Fatalf("cuts %b: %v\n%s", cuts, s.stop, d)
			}
			if s.pos != (view.Position{Output: 11, Sequence: 11, Cause: 4}) {
				t.Fatalf("cuts %b: position %+v", cuts, s.pos)
			}
			if s.loads > 0 {
				t.Fatalf("cuts %b: rows were loaded %d times without a repetition", cuts, s.loads)
			}
		}
	}
}

func TestC36OnePageWithThreeVersionsIsOneWrite(t *testing.T) {
	a, b, c := env(t, 0, "2026-01-01", 1, 10, 0, 0, 1), env(t, 1, "2026-01-01", 2, 0, 1, 0, 1), env(t, 2, "2026-01-01", 3, 30, 2, 0, 1)
	b.Present = false
	d := view.New(config(t), 0, start, 100)
	d.Read([]ledger.SourceRecord{record(0, a), record(1, b), record(2, c)}, 3)
	if got := d.Decide(); got != view.NeedRecords {
		t.Fatalf("demand %d", got)
	}
	p := d.Page()
	if len(p.Changes) != 1 || p.Changes[0].Before != 0 || !p.Changes[0].Envelope.Present || p.Changes[0].Envelope.Version != 3 || p.Changes[0].Envelope.Close != 30 {
		t.Fatalf("changes %+v", p.Changes)
	}
}

func TestC33AWithdrawalIsATombstone(t *testing.T) {
	s := run(t, worked(t), 100, never, never)
	row := s.rows[ledger.OutputID{Key: ledger.StockKey{Item: "widget", Location: "berlin"}, Day: day(t, "2026-01-03"), Kind: ledger.Balance}]
	if row.Envelope.Present || row.Envelope.Close != 0 || row.Envelope.Version != 3 || row.Digest != wire.EnvelopeDigest(worked(t)[10].Value) {
		t.Fatalf("row %+v", row)
	}
}

func TestSC17RepetitionsMoveTheFrontierOnly(t *testing.T) {
	records := worked(t)
	once := run(t, records, 100, never, never)
	var twice []ledger.SourceRecord
	for i := range 2 * len(records) {
		r := records[i/2]
		r.Offset = ledger.Offset(i)
		twice = append(twice, r)
	}
	again := slices.Clone(records)
	for i := range again {
		again[i].Offset += 11
	}
	for name, in := range map[string][]ledger.SourceRecord{"each": twice, "all": append(slices.Clone(records), again...)} {
		for _, cut := range []func(int) bool{never, always, func(i int) bool { return i%3 == 0 }} {
			s := run(t, in, 4, cut, cut)
			if d := gocmp.Diff(once.show(), s.show()); d != "" || s.stop != nil || s.pos != (view.Position{Output: 22, Sequence: 11, Cause: 4}) {
				t.Errorf("%s: %v %+v\n%s", name, s.stop, s.pos, d)
			}
		}
	}
}

// TestSC20OlderVersionAfterTheTombstone shows B4.
func TestSC20OlderVersionAfterTheTombstone(t *testing.T) {
	records := worked(t)
	for _, old := range []int{3, 8} { // 01-03 versions 1 and 2
		late := records[old]
		late.Offset = 11
		s := run(t, append(slices.Clone(records), late), 100, always, always)
		if s.stop != nil || s.pos.Output != 12 || !slices.Contains(s.show(), "widget 2026-01-03 balance v3 withdrawn") {
			t.Errorf("version of sequence %d: %v %+v %v", old, s.stop, s.pos, s.show())
		}
	}
}

// TestSC43LastSequence: 2^63-1 is never a next sequence: the position after it could not be told.
func TestSC43LastSequence(t *testing.T) {
	for last, want := range map[ledger.Sequence]bool{ledger.MaxCounter - 1: false, ledger.MaxCounter: true} {
		d := view.New(config(t), 0, view.Position{Sequence: last, Cause: -1}, 10)
		d.Read([]ledger.SourceRecord{record(0, env(t, last, "2026-01-01", 1, 1, 0, 0, 1))}, 1)
		d.Decide()
		if p := d.Page(); (p.Stop != nil) != want {
			t.Errorf("sequence %d: %v", last, p.Stop)
		}
	}
}

// TestAssumedVersionIsCheckedByTheStore: the first sight of an output assumes its row; a wrong one is found when the page
// is refused, named at its own record, and the repairs before it are kept.
func TestAssumedVersionIsCheckedByTheStore(t *testing.T) {
	in := []ledger.SourceRecord{
		record(0, env(t, 0, "2026-01-01", 1, 1, 0, 0, 1)),
		record(1, env(t, 1, "2026-01-02", 4, 1, 1, 0, 1)), // no row: version 1 is next
		record(2, env(t, 2, "2026-01-03", 1, 1, 2, 0, 1)),
	}
	s := run(t, in, 100, never, never)
	if s.stop == nil || s.stop.Reason != view.VersionGap || s.stop.Offset != 1 || s.pos != (view.Position{Output: 1, Sequence: 1, Cause: 0}) {
		t.Fatalf("%v %+v", s.stop, s.pos)
	}
	if d := gocmp.Diff([]string{"widget 2026-01-01 balance v1 1"}, s.show()); d != "" {
		t.Fatal(d)
	}
}

// TestPendingRepairIsCheckedWhenItWaits: a repair that does not complete is not held on assumptions for ever.
func TestPendingRepairIsCheckedWhenItWaits(t *testing.T) {
	s := newSheet()
	d := view.New(config(t), 0, s.pos, 100)
	d.Read([]ledger.SourceRecord{record(0, env(t, 0, "2026-01-01", 7, 1, 0, 0, 2))}, 1)
	s.drive(t, d)
	if s.stop != nil || d.Pending() != 1 || !d.Assumed() {
		t.Fatalf("stop %v, pending %d, assumed %v", s.stop, d.Pending(), d.Assumed())
	}
	d.Exact()
	s.drive(t, d)
	if s.stop == nil || s.stop.Reason != view.VersionGap || s.pos != start {
		t.Fatalf("%v %+v", s.stop, s.pos)
	}
}

func TestGapsAndMarkersMoveTheFrontier(t *testing.T) {
	s := newSheet()
	d := view.New(config(t), 0, s.pos, 100)
	d.Read(nil, 3)
	s.drive(t, d)
	d.Read([]ledger.SourceRecord{record(5, env(t, 0, "2026-01-01", 1, 1, 0, 0, 2))}, 9)
	s.drive(t, d)
	if s.pos != (view.Position{Output: 5, Cause: -1}) {
		t.Fatalf("while a repair is incomplete the frontier is its first record: %+v", s.pos)
	}
	d.Read([]ledger.SourceRecord{record(11, env(t, 1, "2026-01-02", 1, 1, 0, 1, 2))}, 14)
	s.drive(t, d)
	if s.pos != (view.Position{Output: 14, Sequence: 2, Cause: 0}) {
		t.Fatalf("%+v", s.pos)
	}
}

// TestPageIsAsManyWholeRepairsAsItsLimitAllows: at least one, never a part of one.
func TestPageIsAsManyWholeRepairsAsItsLimitAllows(t *testing.T) {
	sizes := []int{2, 2, 9, 1, 1, 1, 3}
	var in []ledger.SourceRecord
	for cause, n := range sizes {
		for i := range n {
			e := env(t, ledger.Sequence(len(in)), "2026-01-01", ledger.Version(cause+1), 1, ledger.Offset(cause), i, n)
			e.Output.Day += ledger.Day(i)
			if i > 0 {
				e.Version = 1
				for _, before := range sizes[:cause] {
					if before > i {
						e.Version++
					}
				}
			}
			in = append(in, record(ledger.Offset(len(in)), e))
		}
	}
	d := view.New(config(t), 0, start, 4)
	d.Read(in, ledger.Frontier(len(in)))
	var got []ledger.Frontier
	for {
		demand := d.Decide()
		got = append(got, d.Page().Next.Output)
		d.Committed()
		if demand == view.NeedRecords {
			break
		}
		if demand != view.PageFull {
			t.Fatalf("demand %d", demand)
		}
	}
	if want := []ledger.Frontier{4, 13, 16, 19}; !slices.Equal(got, want) {
		t.Fatalf("pages end at %v, want %v", got, want)
	}
}

// fold is I10's independent view: rows by output as raw JSON, from an output topic that keeps to the protocol.
func fold(records []ledger.SourceRecord) map[string]string {
	rows, pending, next := map[string]string{}, [][2]string{}, int64(0)
	for _, r := range records {
		var e struct {
			Sequence int64
			Output   json.RawMessage
			Repair   struct{ Index, Count int }
		}
		if err := json.Unmarshal(r.Value, &e); err != nil || e.Sequence != next {
			continue
		}
		next++
		pending = append(pending, [2]string{string(e.Output), string(r.Value)})
		if e.Repair.Index+1 == e.Repair.Count {
			for _, p := range pending {
				rows[p[0]] = p[1]
			}
			pending = nil
		}
	}
	return rows
}

func (s *sheet) raw() map[string]string {
	out := map[string]string{}
	for _, c := range s.rows {
		v := wire.AppendEnvelope(nil, &c.Envelope)
		var e struct{ Output json.RawMessage }
		if json.Unmarshal(v, &e) == nil && c.Digest == wire.EnvelopeDigest(v) {
			out[string(e.Output)] = string(v)
		}
	}
	return out
}

// history makes an outbox of random repairs over a few outputs, and publishes it as relays do: in order, each restart
// going back some sequences and on from there.
func history(t testing.TB, r *rand.Rand) []ledger.SourceRecord {
	t.Helper()
	versions := map[ledger.OutputID]ledger.Version{}
	var outbox []ledger.SourceRecord
	for cause := range 5 + r.Intn(20) {
		if r.Intn(4) == 0 {
			continue // a record that changed nothing
		}
		item := []string{"widget", "gadget"}[r.Intn(2)]
		days := r.Perm(6)[:1+r.Intn(6)]
		slices.Sort(days)
		for i, n := range days {
			e := env(t, ledger.Sequence(len(outbox)), "2026-01-01", 0, int64(r.Intn(100)), ledger.Offset(cause), i, len(days))
			e.Output.Key.Item = item
			e.Output.Day += ledger.Day(n)
			if e.Present = r.Intn(4) > 0; !e.Present {
				e.Close = 0
			}
			versions[e.Output]++
			e.Version = versions[e.Output]
			outbox = append(outbox, record(0, e))
		}
	}
	var topic []ledger.SourceRecord
	offset := ledger.Offset(0)
	for i := 0; i < len(outbox); {
		rec := outbox[i]
		rec.Offset = offset
		topic = append(topic, rec)
		offset += ledger.Offset(1 + r.Intn(10)/9)
		i++
		if r.Intn(8) == 0 {
			i = max(0, i-r.Intn(12))
		}
	}
	return topic
}

// TestI10ViewIsTheFoldOfTheTopic shows I10.
func TestI10ViewIsTheFoldOfTheTopic(t *testing.T) {
	repetitions := 0
	for seed := range int64(1_000) {
		r := rand.New(rand.NewSource(seed))
		topic := history(t, r)
		want := fold(topic)
		s := run(t, topic, 1+r.Intn(20), func(int) bool { return r.Intn(3) == 0 }, func(int) bool { return r.Intn(5) == 0 })
		if s.stop != nil {
			t.Fatalf("seed %d: %v", seed, s.stop)
		}
		if d := gocmp.Diff(want, s.raw()); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
		if end := ledger.Frontier(topic[len(topic)-1].Offset) + 1; s.pos.Output != end {
			t.Fatalf("seed %d: frontier %d, end %d", seed, s.pos.Output, end)
		}
		repetitions += len(topic) - int(s.pos.Sequence)
	}
	if repetitions < 3_000 {
		t.Fatalf("only %d repetitions", repetitions)
	}
}

// TestStopsAreTheSameInAnyCut: a record altered at random stops every cut and every restart schedule of the topic at the
// same record with the same rows, or none.
func TestStopsAreTheSameInAnyCut(t *testing.T) {
	stops := map[view.Reason]int{}
	for seed := range int64(600) {
		r := rand.New(rand.NewSource(seed))
		topic := history(t, r)
		at := r.Intn(len(topic))
		e, err := wire.DecodeEnvelope(topic[at].Value)
		if err != nil {
			t.Fatal(err)
		}
		switch r.Intn(6) {
		case 0:
			e.Version = max(1, e.Version+ledger.Version(r.Intn(3)-1))
		case 1:
			e.Sequence = max(0, e.Sequence+ledger.Sequence(r.Intn(5)-2))
		case 2:
			e.Cause.Offset = max(0, e.Cause.Offset+ledger.Offset(r.Intn(3)-1))
		case 3:
			e.Count = max(e.Index+1, e.Count+r.Intn(3)-1)
		case 4:
			e.Output.Day = max(1, e.Output.Day+ledger.Day(r.Intn(5)-2))
		case 5:
			e.Present, e.Close = true, e.Close+1
		}
		topic[at] = record(topic[at].Offset, e)
		want := run(t, topic, 1, always, always)
		for range 3 {
			got := run(t, topic, 1+r.Intn(20), func(int) bool { return r.Intn(3) == 0 }, func(int) bool { return r.Intn(5) == 0 })
			if d := gocmp.Diff(want.stop, got.stop); d != "" {
				t.Fatalf("seed %d: %s", seed, d)
			}
			if d := gocmp.Diff(want.raw(), got.raw()); d != "" || want.pos.Sequence != got.pos.Sequence || want.pos.Cause != got.pos.Cause {
				t.Fatalf("seed %d: %+v %+v %s", seed, want.pos, got.pos, d)
			}
			if want.stop != nil && got.pos.Output > ledger.Frontier(got.stop.Offset) {
				t.Fatalf("seed %d: frontier %d past the violation at %d", seed, got.pos.Output, got.stop.Offset)
			}
		}
		if want.stop != nil {
			stops[want.stop.Reason]++
		}
	}
	for _, reason := range []view.Reason{view.SequenceGap, view.RepairBroken, view.VersionGap, view.RepeatAhead, view.RepeatDiffers} {
		if stops[reason] < 6 {
			t.Errorf("%s occurred %d times: %v", reason, stops[reason], stops)
		}
	}
}

// TestC4CancelledBeforeItWasPublished: both versions are published in order, the view ends withdrawn.
func TestC4CancelledBeforeItWasPublished(t *testing.T) {
	gone := env(t, 1, "2026-01-01", 2, 0, 1, 0, 1)
	gone.Present = false
	s := run(t, []ledger.SourceRecord{record(0, env(t, 0, "2026-01-01", 1, 5, 0, 0, 1)), record(1, gone)}, 100, never, never)
	if d := gocmp.Diff([]string{"widget 2026-01-01 balance v2 withdrawn"}, s.show()); d != "" || s.stop != nil {
		t.Fatal(s.stop, d)
	}
}

// TestSC33TheLargestRepairIsHeldDecoded: 73,051 outputs in single reads, visible at once.
// Shows I22.
func TestSC33TheLargestRepairIsHeldDecoded(t *testing.T) {
	d := view.New(config(t), 0, start, 1_000)
	for i := range ledger.MaxRepair {
		e := env(t, ledger.Sequence(i), "2026-01-01", 1, int64(i), 0, i, ledger.MaxRepair)
		e.Output.Day += ledger.Day(i / 2)
		switch {
		case i == ledger.MaxRepair-1:
			e.Output.Kind, e.Output.Day, e.Close, e.Status = ledger.TrustStatus, 0, 0, &ledger.Status{}
		case i%2 == 1:
			e.Output.Kind, e.Previous, e.Threshold = ledger.Alert, int64(i)+60, int64(i)+30
		}
		d.Read([]ledger.SourceRecord{record(ledger.Offset(i), e)}, ledger.Frontier(i+1))
		if got := d.Decide(); got != view.NeedRecords {
			t.Fatalf("output %d: demand %d: %v", i, got, d.Page().Stop)
		}
		if p := d.Page(); i < ledger.MaxRepair-1 && !p.Empty() {
			t.Fatalf("output %d is visible", i)
		}
	}
	if p := d.Page(); len(p.Changes) != ledger.MaxRepair || p.Next != (view.Position{Output: ledger.MaxRepair, Sequence: ledger.MaxRepair}) {
		t.Fatalf("%d changes, %+v", len(p.Changes), p.Next)
	}
}

// BenchmarkDecide is the steady state: pages of 10,000 outputs of repairs of 20, most of them new to the page.
func BenchmarkDecide(b *testing.B) {
	const page, pages = 10_000, 20
	in := make([]ledger.SourceRecord, page*pages)
	for i := range in {
		e := env(b, ledger.Sequence(i), "2026-01-01", ledger.Version(i/page+1), int64(i), ledger.Offset(i/20), i%20, 20)
		e.Output.Key.Item = []string{"widget", "gadget"}[i/20%2]
		e.Output.Day += ledger.Day(i%page/40*20 + i%20)
		in[i] = record(ledger.Offset(i), e)
	}
	cfg := config(b)
	b.ReportAllocs()
	for b.Loop() {
		d := view.New(cfg, 0, start, page)
		for i := 0; i < len(in); i += page {
			d.Read(in[i:i+page], ledger.Frontier(i+page))
			if d.Decide() != view.NeedRecords || len(d.Page().Changes) != page {
				b.Fatal(d.Page().Stop)
			}
			d.Committed()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(in)), "ns/record")
}

// TestPageEndsAtItsRows: several versions of an output are one row of the page, and a repair is never cut.
func TestPageEndsAtItsRows(t *testing.T) {
	t.Parallel()
	d := view.New(config(t), 0, view.Position{Cause: -1}, 100)
	d.LimitRows(2)
	var records []ledger.SourceRecord
	version := ledger.Version(0)
	for i := range ledger.Offset(10) { // one output ten times
		version++
		records = append(records, record(i, env(t, ledger.Sequence(i), "2026-01-01", version, int64(i), i, 0, 1)))
	}
	records = append(records,
		record(10, env(t, 10, "2026-01-02", 1, 1, 10, 0, 2)), record(11, env(t, 11, "2026-01-03", 1, 1, 10, 1, 2)),
		record(12, env(t, 12, "2026-01-01", version+1, 1, 11, 0, 1)))
	d.Read(records, 13)
	for _, want := range []struct {
		demand view.Demand
		rows   int
		next   ledger.Sequence
	}{{view.PageFull, 1, 10}, {view.PageFull, 2, 12}, {view.NeedRecords, 1, 13}} {
		demand := d.Decide()
		if pg := d.Page(); demand != want.demand || len(pg.Changes) != want.rows || pg.Next.Sequence != want.next {
			t.Fatalf("demand %v, %d rows, sequence %d; want %+v", demand, len(pg.Changes), pg.Next.Sequence, want)
		}
		d.Committed()
	}
}
