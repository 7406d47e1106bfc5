package row

import (
	"fmt"
	"math"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

// statusDate is the date infinity, the day of a status row.
const statusDate = math.MaxInt32

// DateOf returns the stored date of an output.
func DateOf(id ledger.OutputID) int32 {
	if id.Kind == ledger.TrustStatus {
		return statusDate
	}
	return int32(id.Day) - DateEpoch
}

// DayOf returns the day of a stored date, 0 for a status.
func DayOf(date int32) ledger.Day {
	if date == statusDate {
		return 0
	}
	return ledger.Day(date + DateEpoch)
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

// ReadView fills r from the columns from version on; the id is set already.
func ReadView(v [][]byte, p ledger.Partition, r *store.ViewRow) (err error) {
	r.Version = ledger.Version(session.ReadInt64(v[colVersion]))
	r.Sequence = ledger.Sequence(session.ReadInt64(v[colRowSequence]))
	r.Cause = store.Cause{TxnID: string(v[colCauseTxnID]), Offset: ledger.Offset(session.ReadInt64(v[colCauseOffset])),
		Revision: ledger.Revision(session.ReadInt64(v[colCauseRevision])), Partition: p}
	r.Digest = session.ReadInt64(v[colRowDigest])
	r.Close, r.Previous, r.Threshold = session.ReadInt64(v[colClose]), session.ReadInt64(v[colPrevious]), session.ReadInt64(v[colThreshold])
	r.Index, r.Count = session.ReadInt32(v[colIndex]), session.ReadInt32(v[colCount])
	r.Present = session.ReadBool(v[colPresent])
	if v[colStatus] != nil {
		if r.Status, err = ReadStatus(v[colStatus]); err != nil {
			return fmt.Errorf("view row of sequence %d: %w: %w", r.Sequence, store.ErrIntegrity, err)
		}
	}
	return nil
}
