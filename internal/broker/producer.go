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

// Header is a hint that travels with a message (S8).
type Header struct {
	Key   string
	Value []byte
}

// Message is one record to publish; a nil Key or Value is absent.
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
	mu          sync.Mutex // guards checked
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
		kgo.MaxProduceRequestsInflightPerBroker(1),
		kgo.ProducerLinger(0),
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
	return &Producer{client: client, topic: topic, incarnation: incarnation, opts: o}, nil
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
	s := &send{done: make(chan struct{}), want: len(messages), offsets: make([]ledger.Offset, 0, len(messages))}
	records := make([]kgo.Record, len(messages))
	for i, m := range messages {
		r := &records[i]
		r.Key, r.Value, r.Partition = m.Key, m.Value, int32(partition)
		if len(m.Headers) > 0 {
			r.Headers = make([]kgo.RecordHeader, len(m.Headers))
			for j, h := range m.Headers {
				r.Headers[j] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
			}
		}
		// The client gets a context that never ends: cancelling a send may make it forget what it wrote.
		p.client.Produce(context.WithoutCancel(ctx), r, s.promise)
	}
	limit := time.NewTimer(p.opts.deliveryTimeout() + produceGrace)
	defer limit.Stop()
	select {
	case <-s.done:
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

// identify compares the topic's id before the client's first send adopts whatever topic has the name.
func (p *Producer) identify(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.checked {
		return nil
	}
	op, cancel := context.WithTimeout(ctx, p.opts.requestTimeout())
	defer cancel()
	d, err := describe(op, p.client, p.topic)
	if err != nil {
		return fmt.Errorf("identify topic %s: %w", p.topic, classify(ctx, err))
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
	done    chan struct{}
	offsets []ledger.Offset
	want    int
	replies int
	mu      sync.Mutex
}

func (s *send) promise(r *kgo.Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies++
	switch {
	case s.err != nil: // the prefix has ended
	case err != nil:
		s.err = sendError(r, err)
	default:
		s.offsets = append(s.offsets, ledger.Offset(r.Offset))
	}
	if s.replies == s.want {
		close(s.done)
	}
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
