package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"amends/internal/engine"
	"amends/internal/journal"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/wire"
)

// line is one partition: an engine over a store that is a slice. What is read back from it went through the packed
// body, as in a real store.
type line struct {
	t         testing.TB
	cfg       *manifest.Config
	states    *engine.States
	decoder   *wire.Decoder
	encoder   *wire.Encoder
	partition ledger.Partition
	pos       engine.Position
	limit     int64
	journal   []ledger.Decision
	snapshots map[ledger.KeyID]stored
	restores  int
	work      ledger.Work
}

type stored struct {
	state    []byte
	frontier ledger.Frontier
}

const roomy = 1 << 40 // a limit that evicts nothing

func newLine(t testing.TB, cfg *manifest.Config, p ledger.Partition, limit int64) *line {
	return &line{t: t, cfg: cfg, partition: p, limit: limit, states: engine.NewStates(cfg, p, limit),
		decoder: wire.NewDecoder(cfg), encoder: wire.NewEncoder(cfg, p), snapshots: map[ledger.KeyID]stored{}}
}

// step restores what is missing, decides recs as one batch and commits all of it; where the engine stops early it goes on.
func (l *line) step(recs ...wire.Decoded) []ledger.Decision {
	l.t.Helper()
	from := len(l.journal)
	for len(recs) > 0 {
		next := ledger.Frontier(recs[len(recs)-1].Record.Offset) + 1
		b, err := l.try(recs, next)
		if err != nil {
			l.t.Fatal(err)
		}
		if len(b.Decisions) == 0 {
			l.t.Fatal("Step made no progress")
		}
		recs = recs[len(b.Decisions):]
	}
	return l.journal[from:]
}

// try restores, decides and commits one batch.
func (l *line) try(recs []wire.Decoded, next ledger.Frontier) (ledger.Batch, error) {
	l.t.Helper()
	for _, key := range l.states.Missing(recs) {
		l.restore(key)
	}
	b, err := engine.Step(l.states, l.pos, recs, next)
	if err != nil {
		return b, err
	}
	if b.Expected != l.pos.Frontier || b.FirstSequence != l.pos.Sequence || b.Partition != l.partition {
		l.t.Fatalf("batch begins at %+v, not at %+v", b, l.pos)
	}
	for i := range b.Decisions {
		l.journal = append(l.journal, l.throughStorage(b.Decisions[i]))
	}
	l.pos = engine.Position{Frontier: b.Next, Sequence: b.NextSequence}
	l.work.Add(b.Work)
	return b, nil
}

// throughStorage returns a decision as a store gives it back.
func (l *line) throughStorage(d ledger.Decision) ledger.Decision {
	l.t.Helper()
	changes, err := journal.DecodeBody(journal.AppendBody(nil, d.Changes))
	if err != nil {
		l.t.Fatal(err)
	}
	d.Changes = changes
	return d
}

func (l *line) restore(key ledger.StockKey) {
	l.t.Helper()
	l.restores++
	id, known := ledger.KeyID(0), false
	var history []ledger.Decision
	for _, d := range l.journal {
		if d.Rejection == 0 && d.Assertion.Key == key {
			id, known = d.KeyID, true
			history = append(history, d)
		}
	}
	var snapshot stored
	if known {
		snapshot = l.snapshots[id]
		history = slices.DeleteFunc(history, func(d ledger.Decision) bool { return ledger.Frontier(d.Offset) < snapshot.frontier })
	}
	if err := l.states.Restore(key, id, known, snapshot.state, history); err != nil {
		l.t.Fatal(err)
	}
}

// snapshot stores the key snapshots that are due.
func (l *line) snapshot(least int64) int {
	due := l.states.Snapshots(least)
	for _, s := range due {
		l.snapshots[s.KeyID] = stored{s.State, l.pos.Frontier}
	}
	return len(due)
}

// restart forgets everything that is not stored.
func (l *line) restart() {
	l.states.Drop()
	if l.states.Len() != 0 || l.states.Bytes() != 0 || l.states.Partition() != l.partition {
		l.t.Fatal("Drop kept something")
	}
}

// decode decodes raw records, numbering them from the partition's frontier.
func (l *line) decode(raw ...ledger.SourceRecord) []wire.Decoded {
	recs := make([]wire.Decoded, len(raw))
	for i := range raw {
		recs[i] = l.decoder.Decode(raw[i])
	}
	return recs
}

// envelopes returns the exact bytes of every output, in sequence order.
func (l *line) envelopes() []string {
	var out []string
	for i := range l.journal {
		for j := range l.journal[i].Changes {
			out = append(out, string(l.encoder.Append(nil, &l.journal[i], j)))
		}
	}
	return out
}

// record returns the decoded record that states a, at that offset of the line's partition.
func (l *line) record(offset ledger.Offset, a ledger.Assertion) wire.Decoded {
	l.t.Helper()
	rec := l.decoder.Decode(ledger.SourceRecord{Partition: l.partition, Offset: offset, Timestamp: 1_767_225_600_000 + int64(offset),
		Key: wire.AppendKey(nil, a.Key), Value: wire.AppendAssertion(nil, a)})
	if rec.Rejection != 0 {
		l.t.Fatalf("record %+v was rejected: %v", a, rec.Rejection)
	}
	return rec
}

var widget = ledger.StockKey{Item: "widget", Location: "berlin"}

// origin is 2026-01-01, business day @1 of the scripts.
var origin, _ = ledger.DateOf(2026, 1, 1)

func day(n int) ledger.Day { return origin + ledger.Day(n) - 1 }

// config returns a configuration with these keys on partition 0 of 2.
func config(t testing.TB, keys ...manifest.StockKey) *manifest.Config {
	t.Helper()
	cfg, err := manifest.New(manifest.Config{Namespace: "test", SourceIncarnation: "kafka:00112233445566778899aabbccddeeff",
		LedgerOrigin: origin, Partitions: 2, StockKeys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func terms(opening int64, threshold *int64) manifest.Terms {
	return manifest.Terms{OpeningBalance: opening, Threshold: threshold}
}

func sixty() *int64 { n := int64(60); return &n }

// worked returns the worked example's configuration.
func worked(t testing.TB) *manifest.Config {
	return config(t, manifest.StockKey{Key: widget, Terms: terms(0, sixty())})
}

func active(txn string, revision int, kind ledger.Kind, quantity int64, at int) ledger.Assertion {
	return ledger.Assertion{Key: widget, TxnID: txn, Revision: ledger.Revision(revision),
		Payload: ledger.Payload{State: ledger.Active, Kind: kind, Quantity: ledger.Quantity(quantity), Day: day(at)}}
}

func cancelled(txn string, revision int) ledger.Assertion {
	return ledger.Assertion{Key: widget, TxnID: txn, Revision: ledger.Revision(revision), Payload: ledger.Payload{State: ledger.Cancelled}}
}

// describe writes a change as the scripts do.
func describe(c ledger.Change) string {
	at := int(c.Day-origin) + 1
	switch {
	case c.Kind == ledger.TrustStatus:
		return fmt.Sprintf("status v%d %s", c.Version, describeStatus(c.Status))
	case !c.Present:
		return fmt.Sprintf("%s @%d v%d withdrawn", c.Kind, at, c.Version)
	case c.Kind == ledger.Alert:
		return fmt.Sprintf("alert @%d v%d %d -> %d", at, c.Version, c.Previous, c.Close)
	}
	return fmt.Sprintf("balance @%d v%d %d", at, c.Version, c.Close)
}

func describeStatus(s *ledger.Status) string {
	if !s.Blocked {
		return "READY"
	}
	text := "BLOCKED"
	for _, r := range s.Reasons {
		if r.Code == ledger.Ambiguous {
			text += fmt.Sprintf(" %s %s r%d", r.Code, r.TxnID, r.Revision)
		} else {
			text += fmt.Sprintf(" %s @%d", r.Code, r.Day-origin+1)
		}
	}
	if s.More > 0 {
		text += fmt.Sprintf(" more %d", s.More)
	}
	return text
}
