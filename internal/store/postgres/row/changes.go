package row

import (
	"amends/internal/journal"
	"amends/internal/ledger"
)

// Changes unpacks the body of the journal row at an offset: store.ErrIntegrity for a damaged one, store.ErrSchema for one of
// another format.
func Changes(at ledger.Offset, body []byte) ([]ledger.Change, error) {
	changes, err := journal.DecodeBody(body)
	if err != nil {
		return nil, damaged(at, err)
	}
	return changes, nil
}
