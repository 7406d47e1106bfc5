package postgres

import (
	"context"
	"fmt"

	"amends/internal/journal"
	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/row"
	"amends/internal/store/postgres/session"
)

// writeBuffers are what one commit encodes into; they are reused.
type writeBuffers struct {
	journal    session.CopyStream
	keys       session.CopyStream
	quarantine session.CopyStream
	rows       session.CopyStream
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
	bounded, cancel := context.WithTimeout(ctx, session.OperationTimeout)
	defer cancel()
	s, err := n.db.pool.Acquire(bounded)
	if err != nil {
		return session.Before(verb, err)
	}
	defer s.Release()
	if s.Server() != t.Server {
		return fmt.Errorf("%s: %w", verb, store.ErrServerChanged)
	}
	if err := n.write(bounded, s, t, b); err != nil {
		switch {
		case session.Fenced(err):
			return fmt.Errorf("%s: epoch %d, frontier %d: %w", verb, t.Epoch, b.Expected, store.ErrFence)
		case session.Contradicts(err):
			return fmt.Errorf("%s: %w: %w", verb, store.ErrIntegrity, err)
		}
		return session.Before(verb, err)
	}
	if err := s.Commit(bounded); err != nil {
		return session.Before(verb, err)
	}
	return nil
}

// write sends everything but COMMIT in one pipeline and reads the answers.
func (n *Namespace) write(ctx context.Context, s *session.Session, t store.Token, b *ledger.Batch) error {
	err := s.Prepare(ctx, "lock_partition", "copy_keys", "copy_journal", "copy_quarantine", "advance", "move")
	if err != nil {
		return err
	}
	w := n.db.buffers.Get().(*writeBuffers)
	defer n.db.buffers.Put(w)
	n.encode(w, b)
	defer s.Arm(ctx)()
	row := [][]byte{session.Int32Param(n.id), session.Int32Param(int32(b.Partition)), session.Int64Param(int64(t.Epoch)), t.Nonce[:], session.Int64Param(int64(b.Expected))}
	if err := s.SendBegin(ctx); err != nil {
		return err
	}
	s.Send("lock_partition", append(row[:5:5], session.Int64Param(int64(b.FirstSequence)))...)
	for _, c := range []struct {
		name string
		data *session.CopyStream
		rows int
	}{{"copy_keys", &w.keys, w.keyCount}, {"copy_journal", &w.journal, len(b.Decisions)}, {"copy_quarantine", &w.quarantine, w.rejected}} {
		if c.rows == 0 {
			continue
		}
		if err := s.CopyIn(ctx, c.name, c.data); err != nil {
			return err
		}
	}
	row = append(row, session.Int64Param(int64(b.Next)))
	if len(b.Decisions) == 0 {
		s.Send("move", row...)
	} else {
		s.Send("advance", append(append(row, session.Int64Param(int64(b.NextSequence))), workParams(b.Work)...)...)
	}
	results, err := s.Sync(ctx)
	if err != nil {
		return err
	}
	if last := results[len(results)-1]; last.Rows != 1 {
		return fmt.Errorf("%s affected %d rows: %w", last.Name, last.Rows, store.ErrFence)
	}
	return nil
}

func workParams(w ledger.Work) [][]byte {
	return [][]byte{session.Int64Param(w.Records), session.Int64Param(w.Accepted), session.Int64Param(w.Rejected), session.Int64Param(w.RewindDays),
		session.Int64Param(w.RefoldedDays), session.Int64Param(w.Changed), session.Int64Param(w.Withdrawn)}
}

// encode fills the COPY streams of a batch.
func (n *Namespace) encode(w *writeBuffers, b *ledger.Batch) {
	w.journal.Reset()
	w.keys.Reset()
	w.quarantine.Reset()
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
func encodeKey(c *session.CopyStream, id int64, namespace int32, p ledger.Partition, k ledger.StockKey) {
	c.Row(5)
	c.Int64(id)
	c.Int32(namespace)
	c.Int32(int32(p))
	c.Text(k.Item)
	c.Text(k.Location)
}

// encodeJournal writes a journal row in the order of copy_journal.
func (n *Namespace) encodeJournal(w *writeBuffers, p ledger.Partition, d *ledger.Decision) {
	c, valid, a := &w.journal, d.Rejection == 0, &d.Assertion
	active := valid && a.Payload.State == ledger.Active
	c.Row(17)
	c.Int64(int64(d.Offset))
	c.Int64(d.Timestamp)
	c.Int64If(valid, int64(d.KeyID))
	c.Int64If(valid, int64(a.Revision))
	c.Int64If(active, int64(a.Payload.Quantity))
	c.Int64If(len(d.Changes) > 0, int64(d.Sequence))
	c.Int32(n.id)
	c.Int32(int32(p))
	c.Int32If(active, int32(a.Payload.Day)-row.DateEpoch)
	c.Int32(int32(len(d.Changes)))
	c.Int16If(valid, int16(a.Payload.State))
	c.Int16If(active, int16(a.Payload.Kind))
	c.Int16If(valid, int16(d.Class))
	c.Int16If(!valid, int16(d.Rejection))
	c.Bytes(d.Digest[:])
	if valid {
		c.Text(a.TxnID)
	} else {
		c.Null()
	}
	if len(d.Changes) == 0 {
		c.Null()
		return
	}
	w.body = journal.AppendBody(w.body[:0], d.Changes)
	c.Bytes(w.body)
}

// encodeQuarantine writes a quarantine row in the order of copy_quarantine.
func (n *Namespace) encodeQuarantine(w *writeBuffers, p ledger.Partition, d *ledger.Decision) {
	w.rejected++
	c, e := &w.quarantine, d.Evidence
	c.Row(10)
	c.Int64(int64(d.Offset))
	c.Int64(e.KeyLength)
	c.Int64(e.ValueLength)
	c.Int32(n.id)
	c.Int32(int32(p))
	c.Int16(int16(d.Rejection))
	c.Bytes(e.KeySHA[:])
	c.Bytes(e.ValueSHA[:])
	c.BytesOrNull(e.Key)
	c.BytesOrNull(e.Value)
}
