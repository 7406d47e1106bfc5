package stored

import (
	"fmt"

	"amends/internal/ledger"
	"amends/internal/store"
)

// CheckReceipts establishes that the receipts of a partition form a prefix that ends at the relay's position (I8). differ is
// told the output offset of what does not.
func CheckReceipts(receipts []store.Receipt, relay *store.RelayPosition, differ func(at int64, detail string)) {
	var next ledger.Sequence
	var end ledger.Frontier
	for _, r := range receipts {
		if r.First != next || ledger.Frontier(r.Offset) < end || r.Next <= r.First {
			differ(int64(r.Offset), fmt.Sprintf("the receipt of sequences %d to %d does not follow the one before it, which ends at %d", r.First, r.Next-1, next))
		}
		next, end = r.Next, r.End()
	}
	if next != relay.Sequence || end != relay.Output {
		differ(int64(end), fmt.Sprintf("the receipts end at sequence %d, offset %d; the relay's position is %d, %d", next, end, relay.Sequence, relay.Output))
	}
}
