package postgres

import (
	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/row"
	"amends/internal/store/postgres/session"
)

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
	c.Int32(row.DateOf(r.ID))
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
