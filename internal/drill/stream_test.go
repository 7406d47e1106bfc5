package drill

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// choices returns the random choices of a drill, seeded by the environment or by the clock; the seed is printed.
func choices(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s=%q: %v", seedEnv, text, err)
		}
	}
	t.Logf("%s=%d", seedEnv, seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// days is how many days the movements of a stream fall on.
const days = 28

// transaction is the last revision of a transaction that a stream sent.
type transaction struct {
	id       string
	revision int
	key      int
	last     string // its record's value
}

// author writes the records of one partition: new movements, corrections, day moves, cancellations, repetitions, and some that
// S3 rejects. It never writes two payloads at one revision.
type author struct {
	rng       *rand.Rand
	partition int
	keys      int
	prefix    string
	sent      []transaction
	n         int
}

func keyOf(k, partition int) string {
	return fmt.Sprintf(`{"item":%q,"location":%q}`, item(k), location(partition))
}

func active(txn string, revision, k, partition int, kind string, quantity, day int) string {
	date := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, day).Format(time.DateOnly)
	return fmt.Sprintf(`{"schema":1,"txn_id":%q,"revision":%d,"state":"active","item":%q,"location":%q,"day":%q,"kind":%q,"quantity":%d}`,
		txn, revision, item(k), location(partition), date, kind, quantity)
}

func cancelled(txn string, revision, k, partition int) string {
	return fmt.Sprintf(`{"schema":1,"txn_id":%q,"revision":%d,"state":"cancelled","item":%q,"location":%q}`, txn, revision, item(k), location(partition))
}

// next returns the next record.
func (a *author) next() *kgo.Record {
	a.n++
	kind := []string{"receipt", "issue"}[a.rng.IntN(2)]
	record := func(k int, value string) *kgo.Record {
		return &kgo.Record{Partition: int32(a.partition), Key: []byte(keyOf(k, a.partition)), Value: []byte(value)}
	}
	change := func(t *transaction) *kgo.Record { return record(t.key, t.last) }
	choice := a.rng.IntN(100)
	if len(a.sent) == 0 {
		choice = 0
	}
	switch {
	case choice < 55:
		t := transaction{id: fmt.Sprintf("%sT-%d", a.prefix, a.n), revision: 1, key: a.rng.IntN(a.keys)}
		t.last = active(t.id, 1, t.key, a.partition, kind, 1+a.rng.IntN(40), a.rng.IntN(days))
		a.sent = append(a.sent, t)
		return change(&t)
	case choice < 80:
		t := &a.sent[a.rng.IntN(len(a.sent))]
		t.revision++
		t.last = active(t.id, t.revision, t.key, a.partition, kind, 1+a.rng.IntN(40), a.rng.IntN(days))
		return change(t)
	case choice < 90:
		t := &a.sent[a.rng.IntN(len(a.sent))]
		t.revision++
		t.last = cancelled(t.id, t.revision, t.key, a.partition)
		return change(t)
	case choice < 97:
		return change(&a.sent[a.rng.IntN(len(a.sent))])
	}
	return record(0, fmt.Sprintf("no assertion %s%d", a.prefix, a.n))
}

// stream sends records to every partition until it is stopped. What the broker acknowledged is remembered.
type stream struct {
	s            *space
	authors      []*author
	acknowledged []map[int64]string // values by partition and offset
	done         chan struct{}
	end          context.CancelFunc
	mu           sync.Mutex
}

// stream begins to send: about perSecond records a second in all.
func (s *space) stream(seed uint64, perSecond int) *stream {
	s.t.Helper()
	ctx, end := context.WithCancel(context.Background())
	st := &stream{s: s, done: make(chan struct{}), end: end}
	for p := range s.partitions {
		st.authors = append(st.authors, &author{rng: rand.New(rand.NewPCG(seed, uint64(p))), partition: p, keys: s.keys, prefix: strconv.FormatUint(seed%1000, 10)})
		st.acknowledged = append(st.acknowledged, map[int64]string{})
	}
	const each = 2 // records of a partition a turn
	turn := time.Second * time.Duration(each*s.partitions) / time.Duration(perSecond)
	go func() {
		defer close(st.done)
		for ctx.Err() == nil {
			var records []*kgo.Record
			for _, a := range st.authors {
				for range each {
					records = append(records, a.next())
				}
			}
			st.send(ctx, records)
			select {
			case <-ctx.Done():
			case <-time.After(turn):
			}
		}
	}()
	s.t.Cleanup(st.stop)
	return st
}

func (st *stream) send(ctx context.Context, records []*kgo.Record) {
	for _, r := range records {
		r.Topic = st.s.source
	}
	results := st.s.kafka.ProduceSync(context.WithoutCancel(ctx), records...)
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, r := range results {
		if r.Err == nil {
			st.acknowledged[r.Record.Partition][r.Record.Offset] = string(r.Record.Value)
		}
	}
}

// stop ends the stream after what it is sending.
func (st *stream) stop() {
	st.end()
	<-st.done
}

// send publishes records as they are; they must be acknowledged.
func (s *space) send(records ...*kgo.Record) {
	s.t.Helper()
	for _, r := range records {
		if r.Topic == "" {
			r.Topic = s.source
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if err := s.kafka.ProduceSync(ctx, records...).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// movement is a new receipt.
func movement(txn string, k, partition, quantity, day int) *kgo.Record {
	return &kgo.Record{Partition: int32(partition), Key: []byte(keyOf(k, partition)), Value: []byte(active(txn, 1, k, partition, "receipt", quantity, day))}
}
