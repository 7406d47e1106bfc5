package faultwire_test

import (
	"context"
	"fmt"
	"sync"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/ledger"
)

// topic is an output topic of one partition in memory, which never fails: the faults here are the database's.
type topic struct {
	name        string
	incarnation string
	mu          sync.Mutex // guards what follows
	records     []ledger.SourceRecord
	cut         int // how many records readers see, 0 for all
}

func (m *topic) delivery() delivery.Topic {
	return delivery.Topic{Topics: m, Name: m.name, Incarnation: m.incarnation, Partitions: 1,
		NewProducer: func() (delivery.Producer, error) { return producer{m}, nil },
		NewReader:   func() (delivery.Reader, error) { return &tail{topic: m}, nil }}
}

// see lets readers see the first records only, 0 for all.
func (m *topic) see(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut = n
}

// write appends a record.
func (m *topic) write(key, value []byte) ledger.Offset {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := ledger.Offset(len(m.records))
	m.records = append(m.records, ledger.SourceRecord{Offset: at, Key: key, Value: value})
	return at
}

func (m *topic) from(at ledger.Frontier) []ledger.SourceRecord {
	m.mu.Lock()
	defer m.mu.Unlock()
	visible := m.records
	if m.cut > 0 {
		visible = visible[:m.cut]
	}
	return append([]ledger.SourceRecord(nil), visible[at:]...)
}

// values are the records' values in order.
func (m *topic) values() []string {
	var out []string
	for _, r := range m.from(0) {
		out = append(out, string(r.Value))
	}
	return out
}

func (m *topic) Topic(context.Context, string) (broker.Topic, error) {
	end := ledger.Offset(len(m.from(0)))
	return broker.Topic{Name: m.name, Incarnation: m.incarnation, Cleanup: "delete", RetentionMS: -1, RetentionBytes: -1,
		Partitions: 1, Start: []ledger.Offset{0}, End: []ledger.Offset{end}}, nil
}

func (m *topic) Incarnation(context.Context, string) (string, error) { return m.incarnation, nil }

func (m *topic) Ends(context.Context, string) ([]ledger.Offset, error) {
	return []ledger.Offset{ledger.Offset(len(m.from(0)))}, nil
}

// CreateTopic makes m the topic that is created: provision.Creator.
func (m *topic) CreateTopic(ctx context.Context, name string, _ int32, _ int16) (broker.Topic, error) {
	if m.name != "" {
		return broker.Topic{}, fmt.Errorf("create %s: %w", name, broker.ErrTopicExists)
	}
	m.name = name
	return m.Topic(ctx, name)
}

type producer struct{ *topic }

func (p producer) Produce(_ context.Context, _ ledger.Partition, messages []broker.Message) (offsets []ledger.Offset, _ error) {
	for _, m := range messages {
		offsets = append(offsets, p.write(append([]byte(nil), m.Key...), append([]byte(nil), m.Value...)))
	}
	return offsets, nil
}

func (producer) Close() {}

type tail struct {
	*topic
	at ledger.Frontier
}

func (r *tail) Seek(_ context.Context, _ ledger.Partition, at ledger.Frontier) error {
	r.at = at
	return nil
}

func (r *tail) Poll(context.Context) ([]broker.Fetched, error) {
	records := r.from(r.at)
	if len(records) == 0 {
		return nil, context.DeadlineExceeded
	}
	from := r.at
	r.at += ledger.Frontier(len(records))
	return []broker.Fetched{{From: from, Next: r.at, Stable: ledger.Offset(r.at), Records: records}}, nil
}

func (*tail) Close() {}
