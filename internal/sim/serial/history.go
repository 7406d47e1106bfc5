package serial

import (
	"fmt"

	"amends/internal/engine"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/sim/topic"
	"amends/internal/wire"
	"amends/internal/workload"
)

// Histories is how many histories the corpus has.
const Histories = 256

// The topics of every history, and their incarnations before anything is created again.
const (
	SourceName = "source"
	OutputName = "output"
	SourceID   = 1
	OutputID   = 2
)

// longestValue leaves out the records whose only difficulty is their size: hashing them would be all that schedules do.
const longestValue = 4_096

// History is a source with all that an undisturbed worker makes of it: the serial model, one record a decision.
type History struct {
	Manifest *manifest.Manifest
	Parts    []Part
}

// Part is one partition of a history.
type Part struct {
	Writes    []Write               // by the source, in order
	Records   []ledger.SourceRecord // visible ones, by offset
	Decisions []ledger.Decision     // of Records, one each
	Ends      []ledger.Sequence     // after each decision
	Blocked   []int                 // keys that are BLOCKED after each decision
	Outputs   []Output              // by sequence
	End       ledger.Frontier       // of the log, markers included
}

// Output is one envelope as it must be published.
type Output struct {
	Key, Value []byte
	ID         ledger.OutputID
	Version    ledger.Version
	Digest     int64
	Cause      ledger.Offset
	Last       bool // of its repair
}

// Write is one thing that the source's writer does: a record by itself or in a transaction, or a marker.
type Write struct {
	Key, Value []byte
	Timestamp  int64
	Kind       Kind
}

// Kind says what a Write is.
type Kind uint8

// The kinds. A marker ends the open transaction, if there is one.
const (
	Plain Kind = iota
	Inside
	Commit
	Abort
)

// New makes history number seed of the corpus: a dozen records or fewer on one or two partitions, with
// rejections, conflicts, counts, transactions that end either way, and markers.
func New(seed uint64) (*History, error) {
	r := workload.NewRand(seed*0x9e3779b9 + 7)
	o := workload.HistoryOptions{Seed: seed, Records: r.Between(3, 12), Keys: r.Between(1, 3), Days: 4, Partitions: 1, Poison: 8, Conflicts: 12, Counts: 10,
		Hostile: r.Percent(10), Edges: r.Percent(15), Open: r.Percent(30)}
	if r.Percent(25) {
		o.Partitions = 2
	}
	source := workload.NewHistory(o)
	cfg, err := source.Setting.Config("sim", topic.Incarnation(SourceID))
	if err != nil {
		return nil, fmt.Errorf("make history %d: %w", seed, err)
	}
	plans := make([][]Write, o.Partitions)
	for p := range plans {
		plans[p] = plan(r, source.Partition(ledger.Partition(p)))
	}
	h, err := Make(cfg, plans)
	if err != nil {
		return nil, fmt.Errorf("make history %d: %w", seed, err)
	}
	return h, nil
}

// Make makes the history of a source with these writes on each partition. The configuration's source incarnation is that
// of SourceID.
func Make(cfg *manifest.Config, plans [][]Write) (*History, error) {
	h := &History{Parts: make([]Part, len(plans)), Manifest: &manifest.Manifest{SourceTopic: SourceName, Config: cfg,
		Output: &manifest.Output{Topic: OutputName, Incarnation: topic.Incarnation(OutputID), Partitions: cfg.Partitions}}}
	for p := range h.Parts {
		part := &h.Parts[p]
		part.Writes = plans[p]
		log := topic.New(SourceName, SourceID, 1).Log(0)
		for i := range part.Writes {
			part.Writes[i].Do(log)
		}
		part.Records, _ = log.Read(ledger.Partition(p), 0, int(log.End()))
		part.End = log.End()
		if err := part.decide(cfg, ledger.Partition(p)); err != nil {
			return nil, fmt.Errorf("decide partition %d: %w", p, err)
		}
	}
	return h, nil
}

// plan puts the records into transactions, and aborted ones and markers among them.
func plan(r *workload.Rand, records []ledger.SourceRecord) []Write {
	var writes []Write
	put := func(kind Kind, rec ledger.SourceRecord) {
		writes = append(writes, Write{Kind: kind, Key: rec.Key, Value: rec.Value, Timestamp: rec.Timestamp})
	}
	for i := 0; i < len(records); {
		if len(records[i].Value) > longestValue || len(records[i].Key) > longestValue {
			i++
			continue
		}
		switch kind := r.Below(12); {
		case kind == 0: // what aborted is a later record, which would have counted
			put(Inside, records[len(records)-1])
			put(Abort, ledger.SourceRecord{})
		case kind == 1:
			put(Commit, ledger.SourceRecord{})
		case kind < 4:
			for n := r.Between(1, 3); n > 0 && i < len(records); n, i = n-1, i+1 {
				if len(records[i].Value) <= longestValue {
					put(Inside, records[i])
				}
			}
			put(Commit, ledger.SourceRecord{})
		default:
			put(Plain, records[i])
			i++
		}
	}
	if r.Percent(30) {
		if len(records) > 0 && len(records[0].Value) <= longestValue {
			put(Inside, records[0])
		}
		put(Abort, ledger.SourceRecord{})
	}
	return writes
}

// Do writes it to a log.
func (w *Write) Do(l *topic.Log) {
	switch w.Kind {
	case Plain:
		l.Append(w.Key, w.Value, w.Timestamp)
	case Inside:
		l.AppendOpen(w.Key, w.Value, w.Timestamp)
	case Commit, Abort:
		l.Mark(w.Kind == Commit)
	}
}

// decide is the serial model: every record alone, from states that are never dropped.
func (part *Part) decide(cfg *manifest.Config, p ledger.Partition) error {
	states, decoder, encoder := engine.NewStates(cfg, p, 1<<30), wire.NewDecoder(cfg), wire.NewEncoder(cfg, p)
	var at engine.Position
	blocked := map[ledger.StockKey]bool{}
	for _, rec := range part.Records {
		decoded := []wire.Decoded{decoder.Decode(rec)}
		for _, key := range states.Missing(decoded) {
			if err := states.Restore(key, 0, false, nil, nil); err != nil {
				return err
			}
		}
		b, err := engine.Step(states, at, decoded, ledger.Frontier(rec.Offset)+1)
		if err != nil {
			return err
		}
		at = engine.Position{Frontier: b.Next, Sequence: b.NextSequence}
		d := b.Decisions[0]
		for i := range d.Changes {
			c := &d.Changes[i]
			if c.Kind == ledger.TrustStatus {
				blocked[d.Assertion.Key] = c.Status.Blocked
			}
			value := encoder.Append(nil, &d, i)
			part.Outputs = append(part.Outputs, Output{ID: ledger.OutputID{Key: d.Assertion.Key, Day: c.Day, Kind: c.Kind}, Key: encoder.Key(nil, &d), Value: value,
				Version: c.Version, Digest: wire.EnvelopeDigest(value), Cause: d.Offset, Last: i == len(d.Changes)-1})
		}
		n := 0
		for _, is := range blocked {
			if is {
				n++
			}
		}
		part.Decisions, part.Ends, part.Blocked = append(part.Decisions, d), append(part.Ends, at.Sequence), append(part.Blocked, n)
	}
	return nil
}

// Below returns how many decisions lie below a source frontier.
func (part *Part) Below(f ledger.Frontier) int {
	n := 0
	for n < len(part.Records) && ledger.Frontier(part.Records[n].Offset) < f {
		n++
	}
	return n
}

// BlockedAt returns how many keys are BLOCKED at a source frontier.
func (part *Part) BlockedAt(f ledger.Frontier) int {
	if n := part.Below(f); n > 0 {
		return part.Blocked[n-1]
	}
	return 0
}
