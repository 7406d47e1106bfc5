package postgres

import (
	"context"
	"fmt"

	"amends/internal/journal"
	"amends/internal/ledger"
	"amends/internal/store"
)

// dateEpoch is the Day of 2000-01-01, from which PostgreSQL counts dates.
const dateEpoch = 730_120

// writeBuffers are what one commit encodes into; they are reused.
type writeBuffers struct {
	journal    copyStream
	keys       copyStream
	quarantine copyStream
	rows       copyStream
	body       []byte
	keyCount   int
	rejected   int
}

// Commit applies one batch in one transaction (S8): ErrFence unless the token, the expected frontier and the first
// sequence are the installed ones; ErrServerChanged if the connection reaches another server than the token's;
// ErrIntegrity if rows contradict stored ones. A batch without decisions moves the frontier only (S13).
func (n *Namespace) Commit(ctx context.Context, t store.Token, b *ledger.Batch) error {
	verb := fmt.Sprintf("commit batch of partition %d", b.Partition)
	if err := store.CheckBatch(b); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	bounded, cancel := context.WithTimeout(ctx, OperationTimeout)
	defer cancel()
	s, err := n.db.acquire(bounded)
	if err != nil {
		return before(verb, err)
	}
	defer s.release()
	if s.server != t.Server {
		return fmt.Errorf("%s: %w", verb, store.ErrServerChanged)
	}
	if err := n.write(bounded, s, t, b); err != nil {
		switch {
		case fenced(err):
			return fmt.Errorf("%s: epoch %d, frontier %d: %w", verb, t.Epoch, b.Expected, store.ErrFence)
		case contradicts(err):
			return fmt.Errorf("%s: %w: %w", verb, store.ErrIntegrity, err)
		}
		return before(verb, err)
	}
	if err := s.commit(bounded); err != nil {
		return before(verb, err)
	}
	return nil
}

// write sends everything but COMMIT in one pipeline and reads the answers.
func (n *Namespace) write(ctx context.Context, s *session, t store.Token, b *ledger.Batch) error {
	err := s.prepare(ctx, "begin", "durable", "lock_partition", "copy_keys", "copy_journal", "copy_quarantine", "advance", "move")
	if err != nil {
		return err
	}
	w := n.db.buffers.Get().(*writeBuffers)
	defer n.db.buffers.Put(w)
	n.encode(w, b)
	defer s.arm(ctx)()
	row := [][]byte{int32Param(n.id), int32Param(int32(b.Partition)), int64Param(int64(t.Epoch)), t.Nonce[:], int64Param(int64(b.Expected))}
	s.send("begin")
	s.send("durable")
	s.send("lock_partition", append(row[:5:5], int64Param(int64(b.FirstSequence)))...)
	for _, c := range []struct {
		name string
		data *copyStream
		rows int
	}{{"copy_keys", &w.keys, w.keyCount}, {"copy_journal", &w.journal, len(b.Decisions)}, {"copy_quarantine", &w.quarantine, w.rejected}} {
		if c.rows == 0 {
			continue
		}
		if err := s.copyIn(c.name, c.data); err != nil {
			s.broken = true
			return contextual(ctx, err)
		}
	}
	row = append(row, int64Param(int64(b.Next)))
	if len(b.Decisions) == 0 {
		s.send("move", row...)
	} else {
		s.send("advance", append(append(row, int64Param(int64(b.NextSequence))), workParams(b.Work)...)...)
	}
	results, err := s.sync(ctx)
	if err != nil {
		return err
	}
	if last := results[len(results)-1]; last.rows != 1 {
		return fmt.Errorf("%s affected %d rows: %w", last.name, last.rows, store.ErrFence)
	}
	return nil
}

func workParams(w ledger.Work) [][]byte {
	return [][]byte{int64Param(w.Records), int64Param(w.Accepted), int64Param(w.Rejected), int64Param(w.RewindDays),
		int64Param(w.RefoldedDays), int64Param(w.Changed), int64Param(w.Withdrawn)}
}

// encode fills the COPY streams of a batch.
func (n *Namespace) encode(w *writeBuffers, b *ledger.Batch) {
	w.journal.reset()
	w.keys.reset()
	w.quarantine.reset()
	w.keyCount, w.rejected = 0, 0
	for i := range b.Decisions {
		d := &b.Decisions[i]
		n.encodeJournal(w, b.Partition, d)
		if d.Rejection != 0 {
			n.encodeQuarantine(w, b.Partition, d)
		}
		if d.NewKey {
			w.keyCount++
			encodeKey(&w.keys, int64(d.KeyID), n.id, b.Partition, d.Assertion.Key)
		}
	}
}

// encodeKey writes a row of keys or view_keys.
func encodeKey(c *copyStream, id int64, namespace int32, p ledger.Partition, k ledger.StockKey) {
	c.row(5)
	c.int64(id)
	c.int32(namespace)
	c.int32(int32(p))
	c.text(k.Item)
	c.text(k.Location)
}

// encodeJournal writes a journal row in the order of copy_journal.
func (n *Namespace) encodeJournal(w *writeBuffers, p ledger.Partition, d *ledger.Decision) {
	c, valid, a := &w.journal, d.Rejection == 0, &d.Assertion
	active := valid && a.Payload.State == ledger.Active
	c.row(17)
	c.int64(int64(d.Offset))
	c.int64(d.Timestamp)
	c.int64If(valid, int64(d.KeyID))
	c.int64If(valid, int64(a.Revision))
	c.int64If(active, int64(a.Payload.Quantity))
	c.int64If(len(d.Changes) > 0, int64(d.Sequence))
	c.int32(n.id)
	c.int32(int32(p))
	c.dayIf(active, a.Payload.Day)
	c.int32(int32(len(d.Changes)))
	c.int16If(valid, int16(a.Payload.State))
	c.int16If(active, int16(a.Payload.Kind))
	c.int16If(valid, int16(d.Class))
	c.int16If(!valid, int16(d.Rejection))
	c.bytes(d.Digest[:])
	if valid {
		c.text(a.TxnID)
	} else {
		c.null()
	}
	if len(d.Changes) == 0 {
		c.null()
		return
	}
	w.body = journal.AppendBody(w.body[:0], d.Changes)
	c.bytes(w.body)
}

// encodeQuarantine writes a quarantine row in the order of copy_quarantine.
func (n *Namespace) encodeQuarantine(w *writeBuffers, p ledger.Partition, d *ledger.Decision) {
	w.rejected++
	c, e := &w.quarantine, d.Evidence
	c.row(10)
	c.int64(int64(d.Offset))
	c.int64(e.KeyLength)
	c.int64(e.ValueLength)
	c.int32(n.id)
	c.int32(int32(p))
	c.int16(int16(d.Rejection))
	c.bytes(e.KeySHA[:])
	c.bytes(e.ValueSHA[:])
	c.bytesOrNull(e.Key)
	c.bytesOrNull(e.Value)
}

func (c *copyStream) int64If(ok bool, v int64) {
	if ok {
		c.int64(v)
	} else {
		c.null()
	}
}

func (c *copyStream) int16If(ok bool, v int16) {
	if ok {
		c.int16(v)
	} else {
		c.null()
	}
}

func (c *copyStream) dayIf(ok bool, d ledger.Day) {
	if ok {
		c.int32(int32(d) - dateEpoch)
	} else {
		c.null()
	}
}
