package drill

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recompute derives what a partition should show (S4 to S7) from its records in the plainest way: the highest revision of each
// transaction, a sum a day. Streams hold no conflicts and no counts, so every key is READY.
func recompute(t testing.TB, source []*kgo.Record) map[string]string {
	t.Helper()
	type assertion struct {
		TxnID    string `json:"txn_id"`
		State    string
		Item     string
		Location string
		Day      string
		Kind     string
		Revision int64
		Quantity int64
	}
	authority := map[string]map[string]assertion{} // by key and transaction
	for _, r := range source {
		var a assertion
		if err := json.Unmarshal(r.Value, &a); err != nil {
			continue // rejected
		}
		key := a.Item + " " + a.Location
		if authority[key] == nil {
			authority[key] = map[string]assertion{}
		}
		if a.Revision > authority[key][a.TxnID].Revision {
			authority[key][a.TxnID] = a
		}
	}
	out := map[string]string{}
	for key, transactions := range authority {
		out["status "+key] = `{"status":"READY","reasons":[],"more":0}`
		sums := map[string]int64{}
		for _, a := range transactions {
			switch {
			case a.State != "active":
			case a.Kind == "receipt":
				sums[a.Day] += a.Quantity
			default:
				sums[a.Day] -= a.Quantity
			}
		}
		previous := int64(opening)
		for _, day := range slices.Sorted(maps.Keys(sums)) {
			closing := previous + sums[day]
			out["balance "+key+" "+day] = fmt.Sprintf(`{"close":%d}`, closing)
			if previous >= threshold && closing < threshold {
				out["alert "+key+" "+day] = fmt.Sprintf(`{"previous":%d,"close":%d,"threshold":%d}`, previous, closing, threshold)
			}
			previous = closing
		}
	}
	return out
}
