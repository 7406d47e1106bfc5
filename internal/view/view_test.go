package view_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/view"
	"amends/internal/wire"
)

// parsed is the worked example's: widget/berlin lives on partition 0 of 2. A configuration never changes.
var parsed = sync.OnceValues(func() (*manifest.Config, error) {
	return manifest.ParseConfig([]byte(`{"schema_version":1,"namespace":"demo","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":0,
		"stock_keys":[{"item":"widget","location":"berlin","partition":0,"opening_balance":0,"threshold":60},
		{"item":"gadget","location":"berlin","partition":0,"opening_balance":0,"threshold":60},
		{"item":"far","location":"berlin","partition":1,"opening_balance":0,"threshold":60}]}`), "kafka:00112233445566778899aabbccddeeff")
})

func config(t testing.TB) *manifest.Config {
	t.Helper()
	c, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var start = view.Position{Cause: -1}

// sheet is the rows of a view and the position they stand at: a store of a few lines.
type sheet struct {
	rows  map[ledger.OutputID]kept
	pos   view.Position
	stop  *view.Violation
	loads int
}

type kept struct {
	Envelope wire.Envelope
	Digest   int64
}

func newSheet() *sheet { return &sheet{rows: map[ledger.OutputID]kept{}, pos: start} }

func (s *sheet) commit(t testing.TB, p view.Page) bool {
	t.Helper()
	if p.Before != s.pos {
		t.Fatalf("page before %+v, stored %+v", p.Before, s.pos)
	}
	for _, c := range p.Changes {
		if s.rows[c.Envelope.Output].Envelope.Version != c.Before {
			return false
		}
	}
	for _, c := range p.Changes {
		s.rows[c.Envelope.Output] = kept{*c.Envelope, c.Digest}
	}
	s.pos, s.stop = p.Next, p.Stop
	return true
}

// drive decides and commits all that d has read.
func (s *sheet) drive(t testing.TB, d *view.Decider) {
	t.Helper()
	refused := false
	for {
		switch demand := d.Decide(); demand {
		case view.NeedRows:
			ids := d.Missing()
			if len(ids) == 0 {
				t.Fatal("rows needed, none named")
			}
			s.loads++
			rows := map[ledger.OutputID]view.Row{}
			for _, id := range ids {
				if c, ok := s.rows[id]; ok {
					rows[id] = view.Row{Version: c.Envelope.Version, Digest: c.Digest}
				}
			}
			d.Supply(ids, rows)
		default:
			p := d.Page()
			if !p.Empty() && !s.commit(t, p) {
				if refused {
					t.Fatal("refused twice")
				}
				refused = true
				d.Exact()
				continue
			}
			if demand == view.Stopped {
				return
			}
			refused = false
			if !p.Empty() {
				d.Committed()
			} else if demand == view.NeedRecords {
				return
			}
		}
	}
}

// run puts records through a view in one page per cut, restarting it where restart says so, and returns what is stored.
func run(t testing.TB, records []ledger.SourceRecord, limit int, cut func(int) bool, restart func(int) bool) *sheet {
	t.Helper()
	s := newSheet()
	cfg := config(t)
	d := view.New(cfg, 0, s.pos, limit)
	read := 0
	for i := range records {
		if !cut(i) && i+1 < len(records) {
			continue
		}
		d.Read(records[read:i+1], ledger.Frontier(records[i].Offset)+1)
		read = i + 1
		s.drive(t, d)
		if s.stop != nil {
			return s
		}
		if restart(i) && i+1 < len(records) {
			d = view.New(cfg, 0, s.pos, limit)
			for read > 0 && ledger.Frontier(records[read-1].Offset) >= s.pos.Output {
				read--
			}
		}
	}
	d.Exact()
	s.drive(t, d)
	return s
}

func never(int) bool  { return false }
func always(int) bool { return true }

func day(t testing.TB, s string) ledger.Day {
	t.Helper()
	d, ok := ledger.ParseDay(s)
	if !ok {
		t.Fatal(s)
	}
	return d
}

// env is a balance of widget/berlin: the fields that a case is about, the rest sound.
func env(t testing.TB, seq ledger.Sequence, on string, version ledger.Version, closing int64, cause ledger.Offset, index, count int) wire.Envelope {
	t.Helper()
	return wire.Envelope{Namespace: "demo", Sequence: seq, Version: version, Present: true, Close: closing,
		Output: ledger.OutputID{Kind: ledger.Balance, Key: ledger.StockKey{Item: "widget", Location: "berlin"}, Day: day(t, on)},
		Cause:  wire.Cause{Offset: cause, TxnID: fmt.Sprint("T-", cause), Revision: 1}, Index: index, Count: count}
}

func record(offset ledger.Offset, e wire.Envelope) ledger.SourceRecord {
	return ledger.SourceRecord{Offset: offset, Key: wire.AppendKey(nil, e.Output.Key), Value: wire.AppendEnvelope(nil, &e)}
}

// worked is the worked example's eleven envelopes, by hand from semantics.md, at offsets 0..10.
func worked(t testing.TB) []ledger.SourceRecord {
	t.Helper()
	lines := `
["balance","widget","berlin","2026-01-01"],"version":1,"present":true,"payload":{"close":100},"cause":{"partition":0,"offset":0,"txn_id":"T-1","revision":1},"repair":{"index":0,"count":2}}
["status","widget","berlin"],"version":1,"present":true,"payload":{"status":"READY","reasons":[],"more":0},"cause":{"partition":0,"offset":0,"txn_id":"T-1","revision":1},"repair":{"index":1,"count":2}}
["balance","widget","berlin","2026-01-02"],"version":1,"present":true,"payload":{"close":80},"cause":{"partition":0,"offset":1,"txn_id":"T-2","revision":1},"repair":{"index":0,"count":1}}
["balance","widget","berlin","2026-01-03"],"version":1,"present":true,"payload":{"close":50},"cause":{"partition":0,"offset":2,"txn_id":"T-3","revision":1},"repair":{"index":0,"count":2}}
["alert","widget","berlin","2026-01-03"],"version":1,"present":true,"payload":{"previous":80,"close":50,"threshold":60},"cause":{"partition":0,"offset":2,"txn_id":"T-3","revision":1},"repair":{"index":1,"count":2}}
["balance","widget","berlin","2026-01-01"],"version":2,"present":true,"payload":{"close":70},"cause":{"partition":0,"offset":3,"txn_id":"T-1","revision":2},"repair":{"index":0,"count":5}}
["balance","widget","berlin","2026-01-02"],"version":2,"present":true,"payload":{"close":50},"cause":{"partition":0,"offset":3,"txn_id":"T-1","revision":2},"repair":{"index":1,"count":5}}
["alert","widget","berlin","2026-01-02"],"version":1,"present":true,"payload":{"previous":70,"close":50,"threshold":60},"cause":{"partition":0,"offset":3,"txn_id":"T-1","revision":2},"repair":{"index":2,"count":5}}
["balance","widget","berlin","2026-01-03"],"version":2,"present":true,"payload":{"close":20},"cause":{"partition":0,"offset":3,"txn_id":"T-1","revision":2},"repair":{"index":3,"count":5}}
["alert","widget","berlin","2026-01-03"],"version":2,"present":false,"payload":null,"cause":{"partition":0,"offset":3,"txn_id":"T-1","revision":2},"repair":{"index":4,"count":5}}
["balance","widget","berlin","2026-01-03"],"version":3,"present":false,"payload":null,"cause":{"partition":0,"offset":4,"txn_id":"T-3","revision":2},"repair":{"index":0,"count":1}}`
	var out []ledger.SourceRecord
	for i, l := range strings.Split(strings.TrimSpace(lines), "\n") {
		out = append(out, ledger.SourceRecord{Offset: ledger.Offset(i), Key: []byte(`{"item":"widget","location":"berlin"}`),
			Value: fmt.Appendf(nil, `{"schema":1,"namespace":"demo","sequence":%d,"output":%s`, i, l)})
	}
	return out
}

// show writes rows as "kind day v3 present close", sorted.
func (s *sheet) show() []string {
	var out []string
	for id, c := range s.rows {
		state := "withdrawn"
		if c.Envelope.Present {
			state = fmt.Sprint(c.Envelope.Close)
		}
		out = append(out, fmt.Sprintf("%s %s %s v%d %s", id.Key.Item, id.Day, id.Kind, c.Envelope.Version, state))
	}
	slices.Sort(out)
	return out
}

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

// violation is a record that must stop the partition at its offset, behind the worked example.
type violation struct {
	name   string
	reason view.Reason
	record func(t *testing.T) ledger.SourceRecord
}

func altered(at int, old, new string) func(*testing.T) ledger.SourceRecord {
	return func(t *testing.T) ledger.SourceRecord {
		r := worked(t)[at]
		v := strings.Replace(string(r.Value), old, new, 1)
		if v == string(r.Value) {
			t.Fatalf("%q is not in %s", old, r.Value)
		}
		return ledger.SourceRecord{Offset: 11, Key: r.Key, Value: []byte(v)}
	}
}

func fresh(change func(*wire.Envelope)) func(*testing.T) ledger.SourceRecord {
	return func(t *testing.T) ledger.SourceRecord {
		e := env(t, 11, "2026-01-02", 3, 7, 5, 0, 1)
		change(&e)
		return record(11, e)
	}
}

var violations = []violation{
	{"SC21 equal version, other payload", view.RepeatDiffers, altered(10, `"present":false,"payload":null`, `"present":true,"payload":{"close":1}`)},
	{"SC21 equal version, other cause", view.RepeatDiffers, altered(10, `"txn_id":"T-3"`, `"txn_id":"T-4"`)},
	{"SC21 equal version, other repair", view.RepeatDiffers, altered(10, `"count":1`, `"count":2`)},
	{"lower sequence, version above the row's", view.RepeatAhead, altered(10, `"version":3`, `"version":4`)},
	{"lower sequence, an output without a row", view.RepeatAhead, altered(10, `2026-01-03`, `2026-01-04`)},
	{"lost publication", view.SequenceGap, fresh(func(e *wire.Envelope) { e.Sequence = 12 })},
	{"the last sequence of all", view.SequenceGap, fresh(func(e *wire.Envelope) { e.Sequence = ledger.MaxCounter })},
	{"next sequence, version of the row", view.VersionGap, fresh(func(e *wire.Envelope) { e.Version = 2 })},
	{"next sequence, version skipped", view.VersionGap, fresh(func(e *wire.Envelope) { e.Version = 4 })},
	{"next sequence, version above 1 of a new output", view.VersionGap, fresh(func(e *wire.Envelope) { e.Output.Day += 5 })},
	{"repair begins in the middle", view.RepairBroken, fresh(func(e *wire.Envelope) { e.Index, e.Count = 1, 2 })},
	{"cause of the last applied", view.RepairBroken, fresh(func(e *wire.Envelope) { e.Cause.Offset = 4 })},
	{"cause below the last applied", view.RepairBroken, fresh(func(e *wire.Envelope) { e.Cause.Offset = 0 })},
	{"repair larger than any", view.NotCanonical, fresh(func(e *wire.Envelope) { e.Count = ledger.MaxRepair + 1 })},
	{"cause of another partition", view.CausePartition, fresh(func(e *wire.Envelope) { e.Cause.Partition = 1 })},
	{"key of another partition", view.WrongPartition, fresh(func(e *wire.Envelope) { e.Output.Key.Item = "far" })},
	{"key the namespace does not know", view.WrongPartition, fresh(func(e *wire.Envelope) { e.Output.Key.Item = "nobody" })},
	{"other namespace", view.OtherNamespace, fresh(func(e *wire.Envelope) { e.Namespace = "other" })},
	{"other record key", view.KeyMismatch, func(t *testing.T) ledger.SourceRecord {
		r := fresh(func(*wire.Envelope) {})(t)
		r.Key = []byte(`{"item":"gadget","location":"berlin"}`)
		return r
	}},
	{"record key not canonical", view.KeyMismatch, func(t *testing.T) ledger.SourceRecord {
		r := fresh(func(*wire.Envelope) {})(t)
		r.Key = []byte(`{"item": "widget","location":"berlin"}`)
		return r
	}},
	{"no record key", view.KeyMismatch, func(t *testing.T) ledger.SourceRecord {
		r := fresh(func(*wire.Envelope) {})(t)
		r.Key = nil
		return r
	}},
	{"no value", view.NotCanonical, func(t *testing.T) ledger.SourceRecord {
		return ledger.SourceRecord{Offset: 11, Key: []byte(`{"item":"widget","location":"berlin"}`)}
	}},
	{"white space in a repetition", view.NotCanonical, altered(10, `"version":3`, `"version": 3`)},
	{"escape that need not be", view.NotCanonical, altered(10, `widget`, `widg\u0065t`)},
	{"truncated", view.NotCanonical, altered(10, `}}`, `}`)},
	{"payload of a withdrawal is the text null", view.NotCanonical, altered(10, `"payload":null`, `"payload":"null"`)},
}

func TestSC21ViolationsStopAtTheExactRecord(t *testing.T) {
	for _, v := range violations {
		t.Run(v.name, func(t *testing.T) {
			bad := v.record(t)
			in := append(worked(t), bad, record(12, env(t, 11, "2026-01-02", 3, 7, 5, 0, 1)))
			clean := run(t, worked(t), 100, never, never)
			for _, limit := range []int{1, 3, 100} {
				for _, cut := range []func(int) bool{never, always} {
					s := run(t, in, limit, cut, never)
					if s.stop == nil {
						t.Fatal("not stopped")
					}
					if s.stop.Reason != v.reason || s.stop.Offset != 11 || !bytes.Equal(s.stop.Value, bad.Value) || !bytes.Equal(s.stop.Key, bad.Key) ||
						(s.stop.Key == nil) != (bad.Key == nil) || (s.stop.Value == nil) != (bad.Value == nil) {
						t.Errorf("stopped by %v at %d: %q %q, want %s", s.stop, s.stop.Offset, s.stop.Key, s.stop.Value, v.reason)
					}
					if s.pos != (view.Position{Output: 11, Sequence: 11, Cause: 4}) {
						t.Errorf("position %+v", s.pos)
					}
					if d := gocmp.Diff(clean.show(), s.show()); d != "" {
						t.Error(d)
					}
				}
			}
		})
	}
}

// TestRepetitionsBeforeAViolationArePassed: the frontier is at the violation, in any cut.
func TestRepetitionsBeforeAViolationArePassed(t *testing.T) {
	in := worked(t)
	for i, old := range []int{3, 10} {
		in = append(in, in[old])
		in[11+i].Offset = ledger.Offset(11 + i)
	}
	in = append(in, record(13, env(t, 11, "2026-01-02", 9, 7, 5, 0, 1)))
	for _, cut := range []func(int) bool{never, always} {
		s := run(t, in, 100, cut, never)
		if s.stop == nil || s.stop.Offset != 13 || s.pos != (view.Position{Output: 13, Sequence: 11, Cause: 4}) {
			t.Fatalf("%v %+v", s.stop, s.pos)
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

// TestViolationInsideARepair: whole repairs before it are committed, the broken one leaves nothing, and the position is
// at its first record.
func TestViolationInsideARepair(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*wire.Envelope)
		reason view.Reason
	}{
		"other cause":   {func(e *wire.Envelope) { e.Cause.Offset++ }, view.RepairBroken},
		"other txn":     {func(e *wire.Envelope) { e.Cause.TxnID = "T-9" }, view.RepairBroken},
		"other count":   {func(e *wire.Envelope) { e.Count++ }, view.RepairBroken},
		"index skipped": {func(e *wire.Envelope) { e.Index++ }, view.RepairBroken},
		"a new repair":  {func(e *wire.Envelope) { e.Index, e.Cause.Offset = 0, e.Cause.Offset+1 }, view.RepairBroken},
		"version":       {func(e *wire.Envelope) { e.Version++ }, view.VersionGap},
		"sequence":      {func(e *wire.Envelope) { e.Sequence++ }, view.SequenceGap},
	} {
		broken := env(t, 2, "2026-01-02", 1, 2, 1, 1, 3)
		tc.change(&broken)
		in := []ledger.SourceRecord{record(0, env(t, 0, "2026-01-01", 1, 1, 0, 0, 1)), record(1, env(t, 1, "2026-01-01", 2, 2, 1, 0, 3)), record(2, broken)}
		for _, cut := range []func(int) bool{never, always} {
			s := run(t, in, 100, cut, cut)
			if s.stop == nil || s.stop.Reason != tc.reason || s.stop.Offset != 2 || s.pos != (view.Position{Output: 1, Sequence: 1, Cause: 0}) {
				t.Errorf("%s: %v %+v", name, s.stop, s.pos)
			}
			if d := gocmp.Diff([]string{"widget 2026-01-01 balance v1 1"}, s.show()); d != "" {
				t.Errorf("%s: %s", name, d)
			}
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
