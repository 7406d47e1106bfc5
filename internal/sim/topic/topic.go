package topic

import (
	"fmt"

	"amends/internal/broker"
	"amends/internal/invariant"
	"amends/internal/ledger"
)

// Topic is one name with the log of each partition. It is not safe for concurrent use.
type Topic struct {
	Name      string
	Retention int64 // retention.ms
	logs      []*Log
	id        uint64
}

// New returns an empty topic whose incarnation follows from id.
func New(name string, id uint64, partitions int32) *Topic {
	t := &Topic{Name: name, Retention: -1, id: id}
	t.clear(partitions)
	return t
}

func (t *Topic) clear(partitions int32) {
	t.logs = make([]*Log, partitions)
	for p := range t.logs {
		t.logs[p] = &Log{open: -1}
	}
}

// Incarnation writes a topic id as the contract does (S2).
func Incarnation(id uint64) string { return fmt.Sprintf("kafka:%032x", id) }

// Incarnation returns the topic's own.
func (t *Topic) Incarnation() string { return Incarnation(t.id) }

// Recreate deletes the topic and creates it again under its name. Logs taken before stay what they were.
func (t *Topic) Recreate(id uint64) {
	invariant.That(id != t.id, "a topic created again has another id")
	t.id = id
	t.clear(int32(len(t.logs)))
}

// Log returns the log of a partition of the present incarnation.
func (t *Topic) Log(p ledger.Partition) *Log { return t.logs[p] }

// Describe returns what an administrator sees.
func (t *Topic) Describe() broker.Topic {
	d := broker.Topic{Name: t.Name, Incarnation: t.Incarnation(), Cleanup: "delete", RetentionMS: t.Retention, RetentionBytes: -1, Partitions: int32(len(t.logs))}
	for _, l := range t.logs {
		d.Start, d.End = append(d.Start, 0), append(d.End, ledger.Offset(l.End()))
	}
	return d
}

// Log is one partition: what was written, by offset.
type Log struct {
	entries []entry
	open    int // the first offset of the open transaction, -1 without one
}

type entry struct {
	key, value []byte
	timestamp  int64
	marker     bool
	aborted    bool
}

// End returns the offset after the last entry.
func (l *Log) End() ledger.Frontier { return ledger.Frontier(len(l.entries)) }

// Stable returns the offset up to which a read-committed reader may see: the end, or the first of an open transaction.
func (l *Log) Stable() ledger.Frontier {
	if l.open >= 0 {
		return ledger.Frontier(l.open)
	}
	return l.End()
}

// Append writes a record outside any transaction and returns its offset. Key and value are kept, not copied.
func (l *Log) Append(key, value []byte, timestamp int64) ledger.Offset {
	l.entries = append(l.entries, entry{key: key, value: value, timestamp: timestamp})
	return ledger.Offset(len(l.entries) - 1)
}

// AppendOpen writes a record inside the partition's one transaction, which it opens if there is none.
func (l *Log) AppendOpen(key, value []byte, timestamp int64) ledger.Offset {
	if l.open < 0 {
		l.open = len(l.entries)
	}
	return l.Append(key, value, timestamp)
}

// Mark ends the open transaction, or none, by a marker.
func (l *Log) Mark(commit bool) {
	if l.open >= 0 && !commit {
		for i := l.open; i < len(l.entries); i++ {
			l.entries[i].aborted = true
		}
	}
	l.open = -1
	l.entries = append(l.entries, entry{marker: true})
}

// Record returns the record at an offset; ok is false for a marker and past the end.
func (l *Log) Record(at ledger.Offset) (key, value []byte, ok bool) {
	if at < 0 || int(at) >= len(l.entries) || l.entries[at].marker {
		return nil, nil, false
	}
	return l.entries[at].key, l.entries[at].value, true
}

// Visible reports whether a read-committed reader sees a record at an offset.
func (l *Log) Visible(at ledger.Offset) bool {
	_, _, ok := l.Record(at)
	return ok && !l.entries[at].aborted && ledger.Frontier(at) < l.Stable()
}

// Read returns the records that a read-committed reader sees from an offset on, and the offset after the last record or
// marker returned: at most most of both together. Aborted records are left out, as the client does (S13).
func (l *Log) Read(p ledger.Partition, from ledger.Frontier, most int) (records []ledger.SourceRecord, next ledger.Frontier) {
	next = from
	for at := from; at < l.Stable() && most > 0; at++ {
		e := &l.entries[at]
		if e.aborted {
			continue
		}
		if !e.marker {
			records = append(records, ledger.SourceRecord{Partition: p, Offset: ledger.Offset(at), Key: e.key, Value: e.value, Timestamp: e.timestamp})
		}
		next = at + 1
		most--
	}
	return records, next
}
