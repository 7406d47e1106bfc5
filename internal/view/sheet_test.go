package view_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

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

func never(int) bool { return false }

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
