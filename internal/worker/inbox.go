package worker

import (
	"fmt"
	"sync"

	"amends/internal/broker"
	"amends/internal/ledger"
)

// inbox holds what was fetched of one partition and not yet decided: consecutive returns of the client, so that
// everything between the partition's frontier and end was seen (S13).
type inbox struct {
	hold    func(held bool) // tells the source to stop or go on fetching; called under mu
	wake    chan struct{}   // one token: there is something to look at
	queue   []broker.Fetched
	end     ledger.Frontier
	bytes   int
	taken   int // bytes that take returned last; their owner has them until it takes again
	limit   int // of bytes; beyond it the source is held
	mu      sync.Mutex
	held    bool
	seeking bool // what arrives is from before a seek and is dropped
}

// newInbox returns the inbox of one of so many partitions.
func newInbox(at ledger.Frontier, partitions int32, hold func(bool)) *inbox {
	return &inbox{end: at, hold: hold, wake: make(chan struct{}, 1), limit: min(inboxBytes, max(inboxesAll/int(partitions), inboxLeast))}
}

// offer takes what a poll returned; a return that does not begin where the last one ended contradicts the client's own
// account and is an integrity stop.
func (b *inbox) offer(f broker.Fetched) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seeking {
		return nil
	}
	if f.From != b.end || f.Next < f.From {
		return fmt.Errorf("take fetched records: partition %d returned %d..%d after %d: %w", f.Partition, f.From, f.Next, b.end, ErrIntegrity)
	}
	b.queue, b.end = append(b.queue, f), f.Next
	b.bytes += size(f.Records)
	if b.bytes > b.limit && !b.held {
		b.held = true
		b.hold(true)
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return nil
}

// take removes records from the front, up to BatchRecords and BatchBytes but at least one, and returns the frontier after
// them; no records and a frontier is a bare move over control records. ok is false when there is nothing.
func (b *inbox) take() (records []ledger.SourceRecord, next ledger.Frontier, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bytes := 0
	b.taken = 0
	for len(b.queue) > 0 {
		f := &b.queue[0]
		n := 0
		for ; n < len(f.Records) && len(records)+n < BatchRecords && (bytes < BatchBytes || len(records)+n == 0); n++ {
			bytes += size(f.Records[n : n+1])
		}
		if len(records) == 0 {
			records = f.Records[:n:n]
		} else {
			records = append(records, f.Records[:n]...)
		}
		if n < len(f.Records) {
			if n > 0 {
				next = ledger.Frontier(f.Records[n-1].Offset) + 1
			}
			f.Records, f.From = f.Records[n:], next
			break
		}
		next = f.Next
		b.queue[0] = broker.Fetched{}
		b.queue = b.queue[1:]
	}
	if next == 0 {
		return nil, 0, false
	}
	b.taken = size(records)
	b.bytes -= b.taken
	if b.held && b.bytes < b.limit/2 {
		b.held = false
		b.hold(false)
	}
	return records, next, true
}

// restart empties the inbox, to go on from another position once the source was sought there.
func (b *inbox) restart(at ledger.Frontier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue, b.bytes, b.taken, b.end, b.seeking = nil, 0, 0, at, true
	if b.held {
		b.held = false
		b.hold(false)
	}
}

// weight returns the bytes of what was fetched and is not decided.
func (b *inbox) weight() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes + b.taken
}

// close lets the source fetch the partition again: it keeps a hold beyond the assignment, also for who is assigned it next.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held {
		b.held = false
		b.hold(false)
	}
}

// sought returns the position that the source must be sought to, once.
func (b *inbox) sought() (ledger.Frontier, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.seeking
	b.seeking = false
	return b.end, was
}

func size(records []ledger.SourceRecord) int {
	n := 0
	for i := range records {
		n += len(records[i].Key) + len(records[i].Value) + recordBytes
	}
	return n
}
