package topic

import (
	"testing"

	"amends/internal/broker"
	"amends/internal/ledger"
)

func offsets(records []ledger.SourceRecord) (at []ledger.Offset) {
	for _, r := range records {
		at = append(at, r.Offset)
	}
	return at
}

// Aborted data and markers are never records; the frontier passes markers because they were returned; an open transaction
// holds readers back (S13).
func TestReadCommitted(t *testing.T) {
	l := New("t", 1, 1).Log(0)
	l.Append(nil, []byte("0"), 0)
	l.AppendOpen(nil, []byte("1"), 0)
	l.Append(nil, []byte("2"), 0)
	if records, next := l.Read(0, 0, 10); len(records) != 1 || next != 1 || l.Stable() != 1 || l.End() != 3 {
		t.Fatalf("before the marker: %v, next %d, stable %d, end %d", offsets(records), next, l.Stable(), l.End())
	}
	l.Mark(false) // of 1 and 2
	l.AppendOpen(nil, []byte("4"), 0)
	l.Mark(true)
	l.Mark(false)
	records, next := l.Read(0, 0, 10)
	if at := offsets(records); len(at) != 2 || at[0] != 0 || at[1] != 4 || next != 7 || l.Stable() != 7 {
		t.Errorf("%v, next %d", at, next)
	}
	if records, next := l.Read(0, 1, 1); len(records) != 0 || next != 4 {
		t.Errorf("one entry from 1: %v, next %d: the marker at 3 is what was returned", offsets(records), next)
	}
	if l.Visible(1) || !l.Visible(4) || l.Visible(5) {
		t.Error("what is visible")
	}
}

func TestRecreatedTopicIsAnother(t *testing.T) {
	topic := New("t", 1, 2)
	log, was := topic.Log(1), topic.Incarnation()
	log.Append([]byte("k"), []byte("v"), 0)
	if err := broker.CheckIdentity(topic.Describe(), was, 2); err != nil {
		t.Fatal(err)
	}
	topic.Recreate(2)
	if topic.Incarnation() == was || topic.Log(1).End() != 0 || log.End() != 1 {
		t.Error("the new topic is the old one")
	}
	if err := broker.CheckIdentity(topic.Describe(), was, 2); err == nil {
		t.Error("its identity passes")
	}
	if _, value, ok := log.Record(0); !ok || string(value) != "v" {
		t.Error("the log taken before lost its record")
	}
}
