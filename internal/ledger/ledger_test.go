package ledger

import (
	"testing"
	"time"
)

func TestDayMatchesCalendar(t *testing.T) {
	at := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	for d := MinDay; d <= MaxDay; d++ {
		if s, want := d.String(), at.Format("2006-01-02"); s != want {
			t.Fatalf("day %d = %s, want %s", d, s, want)
		}
		if got, ok := ParseDay(d.String()); !ok || got != d {
			t.Fatalf("ParseDay(%s) = %d %v, want %d", d, got, ok, d)
		}
		at = at.AddDate(0, 0, 1)
	}
	if at.Year() != 10000 {
		t.Fatalf("MaxDay is not the last day of 9999")
	}
}

func TestParseDayRefuses(t *testing.T) {
	for _, s := range []string{"", "2026-02-29", "1900-02-29", "2026-13-01", "2026-00-01", "2026-01-00", "2026-04-31", "0000-12-31", "10000-01-01",
		"2026-1-01", "2026-01-1x", "2026/01/01", " 2026-01-01", "2026-01-01 ", "+026-01-01"} {
		if d, ok := ParseDay(s); ok {
			t.Errorf("ParseDay(%q) = %v, want refusal", s, d)
		}
	}
	for _, s := range []string{"0001-01-01", "2000-02-29", "9999-12-31"} {
		if _, ok := ParseDay(s); !ok {
			t.Errorf("ParseDay(%q) refused", s)
		}
	}
}

func TestCompareIsByteOrder(t *testing.T) {
	keys := []StockKey{{"A", "b"}, {"a", "a"}, {"a", "b"}, {"a\x00", "a"}, {"ab", "a"}}
	for i := range keys {
		for j := range keys {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := keys[i].Compare(keys[j]); got != want {
				t.Errorf("%q vs %q = %d, want %d", keys[i], keys[j], got, want)
			}
		}
	}
}

func TestIdentifierLimits(t *testing.T) {
	for n, want := range map[int]bool{0: false, 1: true, MaxIdentifierBytes: true, MaxIdentifierBytes + 1: false} {
		if got := ValidIdentifier(string(make([]byte, n))); got != want {
			t.Errorf("%d bytes = %v, want %v", n, got, want)
		}
	}
}
