package view_test

import (
	"bytes"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/view"
	"amends/internal/wire"
)

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
