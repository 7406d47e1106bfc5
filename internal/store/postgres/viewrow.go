package postgres

import (
	"fmt"
	"math"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/row"
	"amends/internal/store/postgres/session"
)

// statusDay is the date infinity, the day of a status row.
const statusDay = math.MaxInt32

// dateOf returns the stored date of an output.
func dateOf(id ledger.OutputID) int32 {
	if id.Kind == ledger.TrustStatus {
		return statusDay
	}
	return int32(id.Day) - row.DateEpoch
}

func dayOf(date int32) ledger.Day {
	if date == statusDay {
		return 0
	}
	return ledger.Day(date + row.DateEpoch)
}

// has says which of close, previous and threshold a row has.
func has(r *store.ViewRow) (closed, alert bool) {
	alert = r.Present && r.ID.Kind == ledger.Alert
	return alert || r.Present && r.ID.Kind == ledger.Balance, alert
}

// viewRowFields is how many fields encodeViewRow writes.
const viewRowFields = 18

// encodeViewRow writes the fields of a row in the order of copy_view_rows.
func (n *Namespace) encodeViewRow(c *session.CopyStream, key int64, r *store.ViewRow, scratch []byte) []byte {
	closed, alert := has(r)
	c.Int64(key)
	c.Int64(int64(r.Version))
	c.Int64(int64(r.Sequence))
	c.Int64(int64(r.Cause.Offset))
	c.Int64(int64(r.Cause.Revision))
	c.Int64(r.Digest)
	c.Int64If(closed, r.Close)
	c.Int64If(alert, r.Previous)
	c.Int64If(alert, r.Threshold)
	c.Int32(n.id)
	c.Int32(int32(r.Cause.Partition))
	c.Int32(dateOf(r.ID))
	c.Int32(r.Index)
	c.Int32(r.Count)
	c.Int16(int16(r.ID.Kind))
	c.Bool(r.Present)
	c.Text(r.Cause.TxnID)
	if r.Status == nil {
		c.Null()
		return scratch
	}
	scratch = row.AppendStatus(scratch[:0], r.Status)
	c.Bytes(scratch)
	return scratch
}

// Columns common to the statements that read view rows, from version on.
const (
	colVersion = iota
	colRowSequence
	colCauseOffset
	colCauseRevision
	colRowDigest
	colClose
	colPrevious
	colThreshold
	colIndex
	colCount
	colPresent
	colCauseTxnID
	colStatus
)

// readViewRow fills r from the columns from version on; the id is set already.
func readViewRow(v [][]byte, p ledger.Partition, r *store.ViewRow) (err error) {
	r.Version = ledger.Version(session.ReadInt64(v[colVersion]))
	r.Sequence = ledger.Sequence(session.ReadInt64(v[colRowSequence]))
	r.Cause = store.Cause{TxnID: string(v[colCauseTxnID]), Offset: ledger.Offset(session.ReadInt64(v[colCauseOffset])),
		Revision: ledger.Revision(session.ReadInt64(v[colCauseRevision])), Partition: p}
	r.Digest = session.ReadInt64(v[colRowDigest])
	r.Close, r.Previous, r.Threshold = session.ReadInt64(v[colClose]), session.ReadInt64(v[colPrevious]), session.ReadInt64(v[colThreshold])
	r.Index, r.Count = session.ReadInt32(v[colIndex]), session.ReadInt32(v[colCount])
	r.Present = session.ReadBool(v[colPresent])
	if v[colStatus] != nil {
		if r.Status, err = row.ReadStatus(v[colStatus]); err != nil {
			return fmt.Errorf("view row of sequence %d: %w: %w", r.Sequence, store.ErrIntegrity, err)
		}
	}
	return nil
}
