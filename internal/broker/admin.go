package broker

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"amends/internal/ledger"
	"amends/internal/pause"
)

// Admin looks at topics and creates them. It is safe for concurrent use.
type Admin struct {
	client *kgo.Client
	once   *kgo.Client // retries nothing: for requests that must be sent at most once
	admin  *kadm.Client
	opts   Options
}

// Topic is everything about a topic on which the contract depends (S9). Start and End are log start offsets and high
// watermarks by partition; RetentionMS and RetentionBytes are -1 when unlimited.
type Topic struct {
	Name           string
	Incarnation    string
	Cleanup        string
	Start          []ledger.Offset
	End            []ledger.Offset
	RetentionMS    int64
	RetentionBytes int64
	Partitions     int32
}

// OpenTransaction is a transaction that holds back read-committed readers from offset First on.
type OpenTransaction struct {
	First      ledger.Offset
	ProducerID int64
	Partition  ledger.Partition
}

// Open prepares a client; it connects on first use. It fails on unusable options only.
func Open(o Options) (*Admin, error) {
	base, err := o.base()
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(base...)
	if err != nil {
		return nil, fmt.Errorf("open broker: %w", err)
	}
	once, err := kgo.NewClient(append(base, kgo.RequestRetries(0))...)
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("open broker: %w", err)
	}
	return &Admin{client: client, once: once, admin: kadm.NewClient(client), opts: o}, nil
}

// Close releases the connections.
func (a *Admin) Close() {
	a.client.Close()
	a.once.Close()
}

// Ping asks the broker for its metadata: ErrUnavailable or ErrRefused when it does not answer.
func (a *Admin) Ping(ctx context.Context) error {
	op, cancel := context.WithTimeout(ctx, a.opts.requestTimeout())
	defer cancel()
	if err := a.client.Ping(op); err != nil {
		return fmt.Errorf("ping broker: %w", a.opts.classify(ctx, err))
	}
	return nil
}

// Incarnation returns the topic's present identity, "kafka:" and 32 hex digits, by one metadata request.
func (a *Admin) Incarnation(ctx context.Context, topic string) (string, error) {
	op, cancel := context.WithTimeout(ctx, a.opts.requestTimeout())
	defer cancel()
	d, err := describe(op, a.client, topic)
	if err != nil {
		return "", fmt.Errorf("identify topic %s: %w", topic, a.opts.classify(ctx, err))
	}
	return incarnation(d.id), nil
}

// Topic reads a topic's identity, settings, log starts and high watermarks. The identity is read before and after the
// rest, so that all of it belongs to one incarnation.
func (a *Admin) Topic(ctx context.Context, name string) (Topic, error) {
	op, cancel := context.WithTimeout(ctx, a.opts.requestTimeout())
	defer cancel()
	t, err := a.topic(op, name)
	if err != nil {
		return Topic{}, fmt.Errorf("read topic %s: %w", name, a.opts.classify(ctx, err))
	}
	return t, nil
}

func (a *Admin) topic(ctx context.Context, name string) (Topic, error) {
	d, err := describe(ctx, a.client, name)
	if err != nil {
		return Topic{}, err
	}
	t := Topic{Name: name, Incarnation: incarnation(d.id), Partitions: d.partitions}
	if err := a.settings(ctx, &t); err != nil {
		return Topic{}, err
	}
	if t.Start, err = offsets(ctx, a.admin.ListStartOffsets, name, t.Partitions); err != nil {
		return Topic{}, err
	}
	if t.End, err = offsets(ctx, a.admin.ListEndOffsets, name, t.Partitions); err != nil {
		return Topic{}, err
	}
	again, err := describe(ctx, a.client, name)
	if err != nil {
		return Topic{}, err
	}
	if again.id != d.id {
		return Topic{}, &IdentityError{Topic: name, What: "incarnation", Want: t.Incarnation, Found: incarnation(again.id)}
	}
	return t, nil
}

func (a *Admin) settings(ctx context.Context, t *Topic) error {
	configs, err := a.admin.DescribeTopicConfigs(ctx, t.Name)
	if err != nil {
		return err
	}
	c, err := configs.On(t.Name, func(r *kadm.ResourceConfig) error { return r.Err })
	if err != nil {
		return err
	}
	values := make(map[string]string, len(c.Configs))
	for _, v := range c.Configs {
		values[v.Key] = v.MaybeValue()
	}
	t.Cleanup = values["cleanup.policy"]
	if t.RetentionMS, err = strconv.ParseInt(values["retention.ms"], 10, 64); err != nil {
		return fmt.Errorf("read retention.ms: %w", err)
	}
	if t.RetentionBytes, err = strconv.ParseInt(values["retention.bytes"], 10, 64); err != nil {
		return fmt.Errorf("read retention.bytes: %w", err)
	}
	return nil
}

// Ends returns the high watermarks of a topic by partition: what has been written, committed or not.
func (a *Admin) Ends(ctx context.Context, topic string) ([]ledger.Offset, error) {
	return a.list(ctx, a.admin.ListEndOffsets, topic)
}

// Stable returns the last stable offsets of a topic by partition: the end of what read-committed readers may see. Less
// than the high watermark means that a transaction is open; OpenTransactions names it.
func (a *Admin) Stable(ctx context.Context, topic string) ([]ledger.Offset, error) {
	return a.list(ctx, a.admin.ListCommittedOffsets, topic)
}

func (a *Admin) list(ctx context.Context, by lister, topic string) ([]ledger.Offset, error) {
	op, cancel := context.WithTimeout(ctx, a.opts.requestTimeout())
	defer cancel()
	d, err := describe(op, a.client, topic)
	if err != nil {
		return nil, fmt.Errorf("list offsets of %s: %w", topic, a.opts.classify(ctx, err))
	}
	out, err := offsets(op, by, topic, d.partitions)
	if err != nil {
		return nil, fmt.Errorf("list offsets of %s: %w", topic, a.opts.classify(ctx, err))
	}
	return out, nil
}

// OpenTransactions names the transactions open on a topic, ordered by partition and first offset: a hint for people
// who ask why a frontier does not move. A broker that does not tell is an error.
func (a *Admin) OpenTransactions(ctx context.Context, topic string) ([]OpenTransaction, error) {
	op, cancel := context.WithTimeout(ctx, a.opts.requestTimeout())
	defer cancel()
	d, err := describe(op, a.client, topic)
	if err != nil {
		return nil, fmt.Errorf("describe producers of %s: %w", topic, a.opts.classify(ctx, err))
	}
	var set kadm.TopicsSet
	for p := range d.partitions {
		set.Add(topic, p)
	}
	producers, err := a.admin.DescribeProducers(op, set)
	if err != nil {
		return nil, fmt.Errorf("describe producers of %s: %w", topic, a.opts.classify(ctx, err))
	}
	var out []OpenTransaction
	producers.EachPartition(func(p kadm.DescribedProducersPartition) {
		err = errors.Join(err, p.Err)
		for _, producer := range p.ActiveProducers {
			if producer.CurrentTxnStartOffset >= 0 {
				out = append(out, OpenTransaction{Partition: ledger.Partition(p.Partition), ProducerID: producer.ProducerID, First: ledger.Offset(producer.CurrentTxnStartOffset)})
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("describe producers of %s: %w", topic, a.opts.classify(ctx, err))
	}
	slices.SortFunc(out, func(x, y OpenTransaction) int {
		if x.Partition != y.Partition {
			return int(x.Partition - y.Partition)
		}
		return int(min(max(x.First-y.First, -1), 1))
	})
	return out, nil
}

// CreateTopic creates a topic with the settings of S9 (deleted never, neither by age nor by size) and reads it back.
// The request is sent once. ErrTopicExists and ErrUnavailable: nothing was created. ErrUnknownOutcome: look with Topic.
func (a *Admin) CreateTopic(ctx context.Context, name string, partitions int32, replication int16) (Topic, error) {
	op, cancel := context.WithTimeout(ctx, a.opts.requestTimeout())
	defer cancel()
	switch _, err := describe(op, a.client, name); {
	case err == nil:
		return Topic{}, fmt.Errorf("create topic %s: %w", name, ErrTopicExists)
	case !errors.Is(err, kerr.UnknownTopicOrPartition):
		return Topic{}, fmt.Errorf("create topic %s: %w", name, a.opts.classify(ctx, err))
	}
	id, err := a.create(op, name, partitions, replication)
	if err != nil {
		return Topic{}, fmt.Errorf("create topic %s: %w", name, err)
	}
	t, err := a.appear(op, name)
	if err != nil {
		return Topic{}, fmt.Errorf("read the created topic %s: %w: %w", name, ErrUnknownOutcome, err)
	}
	if id != (topicID{}) && t.Incarnation != incarnation(id) {
		return Topic{}, &IdentityError{Topic: name, What: "incarnation", Want: incarnation(id), Found: t.Incarnation}
	}
	return t, nil
}

func (a *Admin) create(ctx context.Context, name string, partitions int32, replication int16) (topicID, error) {
	r := kmsg.NewPtrCreateTopicsRequest()
	r.TimeoutMillis = int32(a.opts.requestTimeout().Milliseconds())
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, replication
	for _, kv := range [][2]string{{"cleanup.policy", "delete"}, {"retention.ms", "-1"}, {"retention.bytes", "-1"}} {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = kv[0], kmsg.StringPtr(kv[1])
		t.Configs = append(t.Configs, c)
	}
	r.Topics = append(r.Topics, t)
	resp, err := r.RequestWith(ctx, a.once)
	if err != nil {
		switch {
		case dialing(err):
			return topicID{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
		case opening(err):
			return topicID{}, a.opts.classify(ctx, err)
		}
		return topicID{}, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	if len(resp.Topics) != 1 {
		return topicID{}, fmt.Errorf("%w: the reply names %d topics", ErrUnknownOutcome, len(resp.Topics))
	}
	err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	switch {
	case err == nil:
		return resp.Topics[0].TopicID, nil
	case errors.Is(err, kerr.TopicAlreadyExists):
		return topicID{}, ErrTopicExists
	case errors.Is(err, kerr.NotController):
		return topicID{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	case answered(err):
		return topicID{}, fmt.Errorf("%w: %w: %s", ErrRefused, err, or(deref(resp.Topics[0].ErrorMessage), "no message"))
	}
	return topicID{}, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
}

// appear waits until every broker asked knows the new topic.
func (a *Admin) appear(ctx context.Context, name string) (Topic, error) {
	for {
		t, err := a.topic(ctx, name)
		if err == nil || refused(err) {
			return t, err
		}
		if pause.For(ctx, 20*time.Millisecond) != nil {
			return Topic{}, err
		}
	}
}

// CheckIdentity returns an *IdentityError unless t is the incarnation with that many partitions, keeps everything for
// ever and begins at offset 0 (S9, S13).
func CheckIdentity(t Topic, wantIncarnation string, partitions int32) error {
	bad := func(what, want, found string) error {
		return &IdentityError{Topic: t.Name, What: what, Want: want, Found: found}
	}
	switch {
	case t.Incarnation != wantIncarnation:
		return bad("incarnation", wantIncarnation, t.Incarnation)
	case t.Partitions != partitions:
		return bad("partitions", strconv.Itoa(int(partitions)), strconv.Itoa(int(t.Partitions)))
	case t.Cleanup != "delete":
		return bad("cleanup.policy", "delete", t.Cleanup)
	case t.RetentionMS != -1:
		return bad("retention.ms", "-1", strconv.FormatInt(t.RetentionMS, 10))
	case t.RetentionBytes != -1:
		return bad("retention.bytes", "-1", strconv.FormatInt(t.RetentionBytes, 10))
	}
	for p, start := range t.Start {
		if start != 0 {
			return bad(fmt.Sprintf("log start of partition %d", p), "0", strconv.FormatInt(int64(start), 10))
		}
	}
	return nil
}

type topicID = [16]byte

// incarnation writes a topic id as the contract does (S2).
func incarnation(id [16]byte) string { return "kafka:" + hex.EncodeToString(id[:]) }

// description is what metadata says of a topic.
type description struct {
	id         [16]byte
	partitions int32
}

// describe asks the broker for one topic's metadata. The request is sent as such: the client's admin calls answer from
// a cache, which could show a topic that is gone. A topic without an id cannot be identified.
func describe(ctx context.Context, client *kgo.Client, topic string) (description, error) {
	r := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(topic)
	r.Topics = append(r.Topics, t)
	resp, err := r.RequestWith(ctx, client)
	if err != nil {
		return description{}, err
	}
	if len(resp.Topics) != 1 {
		return description{}, kerr.UnknownTopicOrPartition
	}
	found := &resp.Topics[0]
	if err := kerr.ErrorForCode(found.ErrorCode); err != nil {
		return description{}, err
	}
	if found.TopicID == ([16]byte{}) {
		return description{}, &IdentityError{Topic: topic, What: "incarnation", Want: "a topic id", Found: "none: the broker gives no topic ids"}
	}
	return description{id: found.TopicID, partitions: int32(len(found.Partitions))}, nil
}

type lister func(context.Context, ...string) (kadm.ListedOffsets, error)

func offsets(ctx context.Context, list lister, topic string, partitions int32) ([]ledger.Offset, error) {
	listed, err := list(ctx, topic)
	if err != nil {
		return nil, err
	}
	out := make([]ledger.Offset, partitions)
	for p := range partitions {
		o, ok := listed.Lookup(topic, p)
		if !ok {
			return nil, fmt.Errorf("partition %d was not listed", p)
		}
		if o.Err != nil {
			return nil, o.Err
		}
		out[p] = ledger.Offset(o.Offset)
	}
	return out, nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
