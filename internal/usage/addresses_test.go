package usage_test

import (
	"errors"
	"testing"

	"amends/internal/usage"
)

func TestAddressesRefuseWhatNamesNoBroker(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a:1": "a:1", "a:1,b:2": "a:1,b:2", "a:1, b:2": "a:1,b:2", "[::1]:9092": "[::1]:9092", "kafka": "kafka", "::1": "::1"} {
		var a usage.Addresses
		if err := a.Set(text); err != nil || a.String() != want {
			t.Errorf("%q: %q %v", text, a.String(), err)
		}
	}
	for _, text := range []string{"", " ", ",", ", ,", ":1", "a:", "a:0", "a:65536", "a:b", "a:1:2", "a:1,\x1b[31m:2", "\x1b", `"a"`} {
		var a usage.Addresses
		if err := a.Set(text); err == nil {
			t.Errorf("%q was taken as %q", text, a.String())
		}
	}
}

func TestOneLineIsSafeOnATerminal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain é日本":        "plain é日本",
		"a:\n\tb\r\n  c\n": "a: b; c",
		"to `x`:\n\trefused\n\trefused\n\tother\n\trefused": "to `x`: refused; other",
		"open \x1b[31mx":        `open \x1b[31mx`,
		"bidi \u202e nul \x00.": `bidi \u202e nul \x00.`,
		"bad \xff utf-8":        "bad \ufffd utf-8",
	} {
		if got := usage.OneLine(errors.New(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
