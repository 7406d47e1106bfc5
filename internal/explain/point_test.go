package explain_test

import (
	"strings"
	"testing"
	"time"

	"amends/internal/explain"
	"amends/internal/ledger"
)

func TestPointForms(t *testing.T) {
	t.Parallel()
	three := ledger.Partition(3)
	at := time.Date(2026, 1, 31, 15, 4, 0, 0, time.UTC)
	for text, want := range map[string]explain.Point{
		"0":                         {},
		"9223372036854775807":       {Offset: 9223372036854775807},
		"3/41":                      {Offset: 41, Partition: &three},
		"2026-01-31T15:04Z":         {Time: at},
		"2026-01-31T15:04:00Z":      {Time: at},
		"2026-01-31T16:04+01:00":    {Time: at},
		"2026-01-31T15:04:00.5Z":    {Time: at.Add(500 * time.Millisecond)},
		"2026-01-31T16:04:00+01:00": {Time: at},
		"2026-02-01T00:34+09:30":    {Time: at},
		"2026-01-30T16:04-23:00":    {Time: at},
		"0001-01-01T00:00Z":         {Time: time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)}, // and no offset 0
	} {
		got, err := explain.ParsePoint(text)
		if err != nil || got.Offset != want.Offset || !got.Time.Equal(want.Time) || (got.Partition == nil) != (want.Partition == nil) ||
			got.Partition != nil && *got.Partition != *want.Partition {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "PARTITION/OFFSET", "-1": "PARTITION/OFFSET", "+1": "PARTITION/OFFSET", "9223372036854775808": "PARTITION/OFFSET", "/3": "a partition is 0..1023", "x/3": "a partition is",
		"1024/3": "a partition is", "3/": "PARTITION/OFFSET", "1/2/3": "PARTITION/OFFSET", "2026-01-31": "is a business day, not a time", "2026-01-31T15:04:00": "has no zone",
		"2026-01-31T15:04": "2026-01-31T15:04Z for UTC", "2026-01-31T24:00Z": "PARTITION/OFFSET",
		"2026-02-30T15:04Z": "PARTITION/OFFSET", "yesterday": "PARTITION/OFFSET",
	} {
		if _, err := explain.ParsePoint(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
