package phrase_test

import (
	"testing"

	"amends/internal/phrase"
)

func TestCounted(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 records", 1: "1 record", 2: "2 records", -1: "-1 records", 1 << 40: "1099511627776 records"} {
		if got := phrase.Counted(n, "record"); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
		if got := phrase.Counted(int(n), "record"); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func TestScaledQuantities(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		units int64
		scale int32
		want  string
	}{{0, 0, "0"}, {0, 3, "0.000"}, {1, 3, "0.001"}, {-1, 3, "-0.001"}, {1000, 3, "1.000"}, {-12345, 2, "-123.45"}, {7, 9, "0.000000007"},
		{-9223372036854775808, 0, "-9223372036854775808"}, {-9223372036854775808, 9, "-9223372036.854775808"}} {
		if got := phrase.Quantity(c.units, c.scale); got != c.want {
			t.Errorf("%d at scale %d: %s, want %s", c.units, c.scale, got, c.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"": "", "It's Zoë → \\n": "It's Zoë → \\n", "a\nb\tc": `a\nb\tc`, "\x1b[31m": `\x1b[31m`, "\u202e\u009b": `\u202e\u009b`,
		"\x00": `\x00`, "\xff": "\ufffd", "a\u00a0b": `a\u00a0b`} {
		if got := phrase.Printable(s); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
}
