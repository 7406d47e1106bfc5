package intake

import (
	"fmt"
	"strings"
	"testing"
)

// One operation is a dry run of 100,000 rows.
func BenchmarkDryRun(b *testing.B) {
	var text strings.Builder
	text.WriteString(header)
	for i := range 100_000 {
		fmt.Fprintf(&text, "SKU-%06d,BER,M%08d,2026-01-%02d,%d.%03d\n", i%5000, i, i%28+1, i%900+1, i%1000)
	}
	csv, mapping, m := write(b, "stock.csv", text.String()), write(b, "map.yaml", simple), namespace(b, "2026-01-01", 3)
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if err := dryRun(b, opened(b, csv, mapping, m)); err != nil {
			b.Fatal(err)
		}
	}
}
