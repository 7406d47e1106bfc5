package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/ledger"
)

// Header is a hint that travels with a message (S8): a name and its bytes. It is the client's own type, so that publishing
// copies none.
type Header = kgo.RecordHeader

// Message is one record to publish; a nil Key or Value is absent. Its bytes and headers belong to the Producer until
// Produce returns, and after an error until Close.
type Message struct {
	Key     []byte
	Value   []byte
	Headers []Header
}

// Producer publishes to one incarnation of a topic: idempotent, acknowledged by all replicas, in order, one request in
// flight. After any error but ErrUnavailable from its first call it must be closed and not be used again. Calls for
// different partitions may run concurrently.
type Producer struct {
	client      *kgo.Client
	topic       string
	incarnation string
	opts        Options
	spare       sync.Pool // of *[]kgo.Record
	turns       turns
	checking    chan struct{} // of one; held while the topic is looked at; guards checked
	checked     bool
}

// NewProducer prepares a producer; it connects on first use.
func NewProducer(o Options, topic, incarnation string) (*Producer, error) {
	base, err := o.base()
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(base,
		kgo.DefaultProduceTopicAlways(), kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ManualFlushing(), // an idempotent client keeps up to five requests under way, whatever its options say
		kgo.ProducerBatchMaxBytes(ProduceBatchBytes),
		kgo.RecordDeliveryTimeout(o.deliveryTimeout()),
		kgo.ProduceRequestTimeout(o.deliveryTimeout()),
		kgo.MaxBufferedRecords(1<<20),
		kgo.StopProducerOnDataLossDetected(),
		kgo.UnknownTopicRetries(4),
	)...)
	if err != nil {
		return nil, fmt.Errorf("open producer of %s: %w", topic, err)
	}
	return &Producer{client: client, topic: topic, incarnation: incarnation, opts: o, checking: make(chan struct{}, 1)}, nil
}

// Produce publishes messages to partition p and returns the offsets of the acknowledged prefix, consecutive calls in
// order. Without an error all were acknowledged. ErrUnavailable: nothing was sent. ErrRefused and *IdentityError: past
// the prefix nothing was written. ErrUnknownOutcome: past the prefix anything may have been; close the producer and
// look at the topic (S9, S12). Cancelling ctx does not recall what was sent: that too is an unknown outcome.
func (p *Producer) Produce(ctx context.Context, partition ledger.Partition, messages []Message) ([]ledger.Offset, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	if err := p.identify(ctx); err != nil {
		return nil, err
	}
	s := &send{offsets: make([]ledger.Offset, 0, len(messages))}
	flushing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		p.send(flushing, partition, messages, s)
	}()
	limit := time.NewTimer(p.opts.deliveryTimeout() + produceGrace)
	defer limit.Stop()
	select {
	case <-sent:
	case <-ctx.Done():
		s.fail(fmt.Errorf("%w: %w", ErrUnknownOutcome, ctx.Err()))
	case <-limit.C:
		s.fail(fmt.Errorf("%w: no reply within the delivery timeout", ErrUnknownOutcome))
	}
	acknowledged, err := s.result()
	if err != nil {
		return acknowledged, fmt.Errorf("publish to %s partition %d, message %d of %d: %w", p.topic, partition, len(acknowledged), len(messages), err)
	}
	return acknowledged, nil
}

// records returns n empty records, used again where every promise of an earlier send was kept: the client knows nothing of
// them then.
func (p *Producer) records(n int) []kgo.Record {
	if spare, ok := p.spare.Get().(*[]kgo.Record); ok && cap(*spare) >= n {
		return (*spare)[:n]
	}
	return make([]kgo.Record, n)
}

// send publishes one request after the other: the next one waits for the answer of the one before, and is not sent after a
// failure, so that nothing can lie in the topic behind what is missing there.
func (p *Producer) send(ctx context.Context, partition ledger.Partition, messages []Message, s *send) {
	for len(messages) > 0 && !s.failed() {
		n := oneRequest(messages)
		records := p.records(n)
		p.turns.fill(func() {
			for i, m := range messages[:n] {
				r := &records[i]
				r.Key, r.Value, r.Headers, r.Partition = m.Key, m.Value, m.Headers, int32(partition)
				// The client gets a context that never ends: cancelling a send may make it forget what it wrote.
				p.client.Produce(context.WithoutCancel(ctx), r, s.promise)
			}
		})
		var err error
		p.turns.flush(func() { err = p.client.Flush(ctx) }) // which ends when every promise was kept
		if err != nil {
			return // Produce gave up and says why
		}
		clear(records)
		p.spare.Put(&records)
		messages = messages[n:]
	}
}

// What a record and a header take up in a batch beside their bytes, at most.
const (
	recordOverhead = 40
	headerOverhead = 12
	batchOverhead  = 100
)

// oneRequest returns how many messages go into one batch, at least one.
func oneRequest(messages []Message) int {
	size := batchOverhead
	for i, m := range messages {
		size += recordOverhead + len(m.Key) + len(m.Value)
		for _, h := range m.Headers {
			size += headerOverhead + len(h.Key) + len(h.Value)
		}
		if size > ProduceBatchBytes && i > 0 {
			return i
		}
	}
	return len(messages)
}

// turns keeps the client from sending while any partition's records are being handed to it: what is handed over at once is
// one batch. Partitions fill and flush side by side, never one filling while another flushes.
type turns struct {
	mu       sync.Mutex // guards the rest
	changed  chan struct{}
	filling  int
	flushing int
}

// fill hands records over while nobody flushes.
func (t *turns) fill(do func()) { t.take(&t.filling, &t.flushing, do) }

// flush sends and waits while nobody fills.
func (t *turns) flush(do func()) { t.take(&t.flushing, &t.filling, do) }

func (t *turns) take(mine, others *int, do func()) {
	t.mu.Lock()
	for *others > 0 {
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		t.mu.Unlock()
		<-changed
		t.mu.Lock()
	}
	*mine++
	t.mu.Unlock()
	do()
	t.mu.Lock()
	defer t.mu.Unlock()
	if *mine--; *mine == 0 && t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// identify compares the topic's id before the client's first send adopts whatever topic has the name.
func (p *Producer) identify(ctx context.Context) error {
	select {
	case p.checking <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.checking }()
	if p.checked {
		return nil
	}
	op, cancel := context.WithTimeout(ctx, p.opts.requestTimeout())
	defer cancel()
	d, err := describe(op, p.client, p.topic)
	if err != nil {
		return fmt.Errorf("identify topic %s: %w", p.topic, p.opts.classify(ctx, err))
	}
	if found := incarnation(d.id); found != p.incarnation {
		return &IdentityError{Topic: p.topic, What: "incarnation", Want: p.incarnation, Found: found}
	}
	p.checked = true
	return nil
}

// Close ends the producer without waiting for what is in flight; its outcome stays unknown.
func (p *Producer) Close() { p.client.Close() }

// send gathers the promises of one Produce; the client calls them in order.
type send struct {
	err     error
	offsets []ledger.Offset
	mu      sync.Mutex
}

func (s *send) promise(r *kgo.Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil: // the prefix has ended
	case err != nil:
		s.err = sendError(r, err)
	default:
		s.offsets = append(s.offsets, ledger.Offset(r.Offset))
	}
}

func (s *send) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

func (s *send) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = first(s.err, err)
}

func (s *send) result() ([]ledger.Offset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offsets, s.err
}

// sendError says what a failed promise means: only the broker's own refusals are certain not to have written.
func sendError(_ *kgo.Record, err error) error {
	for _, no := range []error{kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed,
		kerr.InvalidRecord, kerr.PolicyViolation, kerr.InvalidTopicException} {
		if errors.Is(err, no) {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
	return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
}
