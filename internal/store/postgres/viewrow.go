package postgres

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// statusDay is the date infinity, the day of a status row.
const statusDay = math.MaxInt32

// dateOf returns the stored date of an output.
func dateOf(id ledger.OutputID) int32 {
	if id.Kind == ledger.TrustStatus {
		return statusDay
	}
	return int32(id.Day) - dateEpoch
}

func dayOf(date int32) ledger.Day {
	if date == statusDay {
		return 0
	}
	return ledger.Day(date + dateEpoch)
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
	scratch = appendStatus(scratch[:0], r.Status)
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
		if r.Status, err = readStatus(v[colStatus]); err != nil {
			return fmt.Errorf("view row of sequence %d: %w: %w", r.Sequence, store.ErrIntegrity, err)
		}
	}
	return nil
}

const readyStatus = `{"status":"READY","reasons":[],"more":0}`

// appendStatus appends a status payload as JSON text, which never holds a raw NUL: the payload of S8.
func appendStatus(dst []byte, s *ledger.Status) []byte {
	if !s.Blocked {
		return append(dst, readyStatus...)
	}
	dst = append(dst, `{"status":"BLOCKED","reasons":[`...)
	for i, r := range s.Reasons {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"code":"`...)
		dst = append(dst, r.Code.String()...)
		if r.Code == ledger.Ambiguous {
			dst = append(dst, `","txn_id":`...)
			dst = manifest.AppendString(dst, r.TxnID)
			dst = append(dst, `,"revision":`...)
			dst = strconv.AppendInt(dst, int64(r.Revision), 10)
		} else {
			dst = append(dst, `","day":"`...)
			dst = append(r.Day.AppendTo(dst), '"')
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `],"more":`...)
	dst = strconv.AppendInt(dst, s.More, 10)
	return append(dst, '}')
}

// readStatus reads what appendStatus wrote.
func readStatus(text []byte) (*ledger.Status, error) {
	if string(text) == readyStatus {
		return &ledger.Status{}, nil
	}
	var payload struct {
		Status  string
		Reasons []struct {
			Code     string
			TxnID    string `json:"txn_id"`
			Day      string
			Revision ledger.Revision
		}
		More int64
	}
	if err := json.Unmarshal(text, &payload); err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	s := &ledger.Status{Blocked: payload.Status == "BLOCKED", More: payload.More}
	for _, r := range payload.Reasons {
		reason := ledger.Reason{TxnID: r.TxnID, Revision: r.Revision}
		reason.Day, _ = ledger.ParseDay(r.Day)
		for _, c := range []ledger.ReasonCode{ledger.Ambiguous, ledger.CountsDisagree, ledger.Unrepresentable} {
			if c.String() == r.Code {
				reason.Code = c
			}
		}
		s.Reasons = append(s.Reasons, reason)
	}
	if string(appendStatus(nil, s)) != string(text) {
		return nil, fmt.Errorf("read status: %q is not a status payload", text)
	}
	return s, nil
}
