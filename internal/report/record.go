package report

import (
	"time"

	"amends/internal/store"
	"amends/internal/verify"
)

// Verification is what the database keeps of a report whose verification began then, in words with quantities at the namespace's
// scale.
func Verification(r *verify.Report, scale int32, began time.Time) store.Verification {
	v := store.Verification{Started: began, Status: string(r.Status), Keys: r.Keys, Outputs: r.Outputs, Differences: r.Differences,
		Quiesced: r.Mode == "quiesced", Deep: r.Deep}
	for _, b := range r.Boundary {
		v.Boundary = append(v.Boundary, store.Cut{Partition: b.Partition, Frontier: b.SourceEnd})
	}
	if r.Status != verify.Pass {
		v.Detail = Headline(r, scale)
	}
	return v
}
