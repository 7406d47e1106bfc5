package wire

import (
	"strconv"

	"amends/internal/ledger"
)

// AppendAssertion appends the value of S3 that states a, which must be valid, its members in the order of S3.
func AppendAssertion(dst []byte, a ledger.Assertion) []byte {
	dst = append(dst, `{"schema":1,"txn_id":`...)
	dst = AppendString(dst, a.TxnID)
	dst = append(dst, `,"revision":`...)
	dst = strconv.AppendInt(dst, int64(a.Revision), 10)
	dst = append(dst, `,"state":"`...)
	dst = append(dst, a.Payload.State.String()...)
	dst = append(dst, `","item":`...)
	dst = AppendString(dst, a.Key.Item)
	dst = append(dst, `,"location":`...)
	dst = AppendString(dst, a.Key.Location)
	if a.Payload.State == ledger.Active {
		dst = append(dst, `,"day":"`...)
		dst = a.Payload.Day.AppendTo(dst)
		dst = append(dst, `","kind":"`...)
		dst = append(dst, a.Payload.Kind.String()...)
		dst = append(dst, `","quantity":`...)
		dst = strconv.AppendInt(dst, int64(a.Payload.Quantity), 10)
	}
	return append(dst, '}')
}
