package serial

import (
	"bytes"
	"slices"

	"amends/internal/ledger"
	"amends/internal/sim/topic"
	"amends/internal/store"
)

// Books are what a partition must be like, kept apart from the store by what each effect said of itself. Fail is told
// of an invariant that an effect broke.
type Books struct {
	Part      *Part
	Source    *topic.Log // of the incarnations that the manifest names
	Output    *topic.Log
	Fail      func(invariant, detail string, args ...any)
	Fold      map[ledger.OutputID]Held // of the output topic below Folded
	past      []store.Token            // that committed before token did
	token     store.Token              // of the last commit
	Highest   ledger.Frontier          // the frontier ever
	Frontier  ledger.Frontier
	Sequence  ledger.Sequence
	Published ledger.Sequence // the next first occurrence in the output topic
	Receipted ledger.Sequence
	Applied   ledger.Sequence
	Folded    ledger.Frontier
	receipts  ledger.Frontier // the end of the last
	epoch     ledger.Epoch    // of the last claim
	decided   int
	partition ledger.Partition
}

// Held is a version of an output in the fold of the output topic.
type Held struct {
	Version  ledger.Version
	Digest   int64
	Sequence ledger.Sequence
}

// NewBooks returns the books of a partition in which nothing has happened.
func NewBooks(p ledger.Partition, part *Part, source, output *topic.Log, fail func(invariant, detail string, args ...any)) *Books {
	return &Books{partition: p, Part: part, Source: source, Output: output, Fail: fail, Fold: map[ledger.OutputID]Held{}}
}

// Clone returns what Restore goes back to.
func (b *Books) Clone() *Books {
	c := *b
	c.past = slices.Clone(b.past)
	c.Fold = nil
	return &c
}

// Restore makes b what it was, after a promotion that lost what followed. What lies in the topics stays there.
func (b *Books) Restore(was *Books) {
	published, highest := b.Published, b.Highest
	*b = *was
	b.past = slices.Clone(was.past)
	b.Published, b.Highest = published, highest
	b.Folded, b.Applied, b.Fold = 0, 0, map[ledger.OutputID]Held{}
	b.foldTo(was.Folded)
}

// Claim checks that epochs rise.
func (b *Books) Claim(o store.Owned) {
	if o.Token.Epoch != b.epoch+1 || o.Frontier != b.Frontier || o.Sequence != b.Sequence {
		b.Fail("I4", "claim of partition %d gave epoch %d after %d, frontier %d of %d", b.partition, o.Token.Epoch, b.epoch, o.Frontier, b.Frontier)
	}
	b.epoch = o.Token.Epoch
}

// Commit checks one commit that took effect: I1, I2, I3, I4, I9, I15.
func (b *Books) Commit(t, installed store.Token, batch *ledger.Batch) {
	switch {
	case t != installed:
		b.Fail("I4", "partition %d: a commit under epoch %d, installed is %d", b.partition, t.Epoch, installed.Epoch)
	case t != b.token && slices.Contains(b.past, t):
		b.Fail("I4", "partition %d: commits of epoch %d go on after those of another token", b.partition, t.Epoch)
	case batch.Expected != b.Frontier || batch.Next < b.Frontier:
		b.Fail("I1", "partition %d: a commit from %d to %d at frontier %d", b.partition, batch.Expected, batch.Next, b.Frontier)
	case batch.Next > b.Source.Stable():
		b.Fail("I1", "partition %d: frontier %d is beyond what readers see, %d", b.partition, batch.Next, b.Source.Stable())
	case batch.FirstSequence != b.Sequence:
		b.Fail("I2", "partition %d: outputs from sequence %d at %d", b.partition, batch.FirstSequence, b.Sequence)
	}
	if t != b.token {
		b.past = append(b.past, b.token)
		b.token = t
	}
	after := b.Part.Below(batch.Next)
	if after != b.decided+len(batch.Decisions) {
		b.Fail("I1", "partition %d: frontier %d with %d decisions of %d", b.partition, batch.Next, b.decided+len(batch.Decisions), after)
		return
	}
	for i := range batch.Decisions {
		if what := Differs(&batch.Decisions[i], &b.Part.Decisions[b.decided+i]); what != "" {
			b.Fail("I9", "partition %d offset %d: %s is not that of the serial model", b.partition, batch.Decisions[i].Offset, what)
		}
	}
	b.decided, b.Frontier, b.Sequence = after, batch.Next, batch.NextSequence
	b.Highest = max(b.Highest, b.Frontier)
	if after > 0 && b.Sequence != b.Part.Ends[after-1] {
		b.Fail("I2", "partition %d: next sequence %d, the serial model has %d", b.partition, b.Sequence, b.Part.Ends[after-1])
	}
}

// Differs says in what a decision is not the one wanted, "" if in nothing.
func Differs(d, want *ledger.Decision) string {
	switch {
	case d.Offset != want.Offset:
		return "its offset"
	case d.Rejection != want.Rejection || d.Class != want.Class:
		return "its class or code"
	case d.Digest != want.Digest:
		return "its digest"
	case d.Rejection == 0 && (d.Assertion != want.Assertion || d.KeyID != want.KeyID || d.NewKey != want.NewKey):
		return "its assertion"
	case (d.Evidence == nil) != (want.Evidence == nil):
		return "its evidence"
	case d.Evidence != nil && !(bytes.Equal(d.Evidence.Key, want.Evidence.Key) && bytes.Equal(d.Evidence.Value, want.Evidence.Value)):
		return "its quarantined bytes"
	case len(d.Changes) != len(want.Changes) || len(d.Changes) > 0 && d.Sequence != want.Sequence:
		return "what it emits"
	}
	for i := range d.Changes {
		a, b := d.Changes[i], want.Changes[i]
		if (a.Status == nil) != (b.Status == nil) || a.Status != nil && !a.Status.Equal(*b.Status) {
			return "a status"
		}
		if a.Status, b.Status = nil, nil; a != b {
			return "an output version"
		}
	}
	return ""
}

// Publish checks one record that was written to the output topic, and reports whether it repeats one: I7.
func (b *Books) Publish(key, value []byte) (repeated bool) {
	for s := min(int(b.Published), len(b.Part.Outputs)-1); s >= 0; s-- {
		o := &b.Part.Outputs[s]
		if !bytes.Equal(o.Value, value) {
			continue
		}
		switch {
		case !bytes.Equal(o.Key, key):
			b.Fail("I7", "partition %d: sequence %d has key %q", b.partition, s, key)
		case s < int(b.Published):
			return true
		case o.Cause >= ledger.Offset(b.Highest):
			b.Fail("I7", "partition %d: sequence %d is published, its cause %d was never committed", b.partition, s, o.Cause)
		}
		b.Published++
		return false
	}
	b.Fail("I7", "partition %d: where sequence %d is due the topic receives %.200q", b.partition, b.Published, value)
	return false
}

// Receipt checks a receipt that was stored: I8, I18.
func (b *Books) Receipt(l store.Lease, pos store.RelayPosition, r store.Receipt) {
	if pos.Term != l.Term || pos.Nonce != l.Nonce {
		b.Fail("I18", "partition %d: a receipt under term %d, installed is %d", b.partition, l.Term, pos.Term)
	}
	if r.Next <= b.Receipted && r.End() <= b.receipts {
		return // the same again
	}
	if r.First != b.Receipted || ledger.Frontier(r.Offset) < b.receipts || r.Next > b.Sequence {
		b.Fail("I8", "partition %d: a receipt of sequences %d to %d at %d after %d at %d, outbox to %d", b.partition, r.First, r.Next, r.Offset, b.Receipted, b.receipts, b.Sequence)
	}
	for s := r.First; s < r.Next; s++ {
		at := r.Offset + ledger.Offset(s-r.First)
		if _, value, ok := b.Output.Record(at); !ok || !bytes.Equal(value, b.Part.Outputs[s].Value) {
			b.Fail("I8", "partition %d: a receipt says that sequence %d lies at output offset %d", b.partition, s, at)
		}
	}
	b.Receipted, b.receipts = r.Next, r.End()
}

// foldTo extends the fold of the output topic to an offset: first occurrences in order.
func (b *Books) foldTo(end ledger.Frontier) {
	for ; b.Folded < end; b.Folded++ {
		_, value, ok := b.Output.Record(ledger.Offset(b.Folded))
		if !ok || int(b.Applied) == len(b.Part.Outputs) || !bytes.Equal(value, b.Part.Outputs[b.Applied].Value) {
			continue
		}
		o := &b.Part.Outputs[b.Applied]
		b.Fold[o.ID] = Held{Version: o.Version, Digest: o.Digest, Sequence: b.Applied}
		b.Applied++
	}
}

// View checks a page that was applied: I5, I10, I18.
func (b *Books) View(l store.Lease, pos store.ViewPosition, page *store.ViewPage) {
	if pos.Term != l.Term || pos.Nonce != l.Nonce {
		b.Fail("I18", "partition %d: a page under term %d, installed is %d", b.partition, l.Term, pos.Term)
	}
	if pos.Output != b.Folded || pos.Sequence != b.Applied {
		b.Fail("I10", "partition %d: a page at %d, sequence %d, where the view is at %d, sequence %d", b.partition, pos.Output, pos.Sequence, b.Folded, b.Applied)
		return
	}
	from := b.Applied
	b.foldTo(page.Next.Output)
	if page.Next.Sequence != b.Applied || page.Next.Output > b.Output.End() {
		b.Fail("I10", "partition %d: below output offset %d the topic ends with sequence %d, the view says %d", b.partition, page.Next.Output, b.Applied-1, page.Next.Sequence-1)
		return
	}
	if b.Applied > 0 && !b.Part.Outputs[b.Applied-1].Last {
		b.Fail("I10", "partition %d: the view holds half a repair, up to sequence %d", b.partition, b.Applied-1)
	}
	changed := map[ledger.OutputID]bool{}
	for s := from; s < b.Applied; s++ {
		changed[b.Part.Outputs[s].ID] = true
	}
	for i := range page.Changes {
		r := &page.Changes[i].Row
		h := b.Fold[r.ID]
		if !changed[r.ID] || h.Version != r.Version || h.Digest != r.Digest || h.Sequence != r.Sequence {
			b.Fail("I10", "partition %d: the row of %v has version %d, the topic gives %d", b.partition, r.ID, r.Version, h.Version)
		}
		delete(changed, r.ID)
	}
	if len(changed) > 0 || page.Stop != nil {
		b.Fail("I10", "partition %d: a page leaves out %d outputs, stop %v", b.partition, len(changed), page.Stop)
	}
}
