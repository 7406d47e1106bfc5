package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"amends/internal/ledger"
)

// TestGoldenBodies pins format 1: testdata/bodies.txt holds bodies taken apart by hand, and these are the changes they say.
func TestGoldenBodies(t *testing.T) {
	t.Parallel()
	day := ledger.Day(739_617) // 2026-01-01
	want := map[string][]ledger.Change{
		"nothing": nil,
		"first record": {
			{Kind: ledger.Balance, Day: day, Version: 1, Present: true, Close: 100},
			{Kind: ledger.TrustStatus, Version: 1, Present: true, Status: &ledger.Status{}},
		},
		"correction": {
			{Kind: ledger.Balance, Day: day, Version: 2, Present: true, Close: 70},
			{Kind: ledger.Balance, Day: day + 1, Version: 2, Present: true, Close: 50},
			{Kind: ledger.Alert, Day: day + 1, Version: 1, Present: true, Close: 50, Previous: 70},
			{Kind: ledger.Balance, Day: day + 2, Version: 2, Present: true, Close: 20},
			{Kind: ledger.Alert, Day: day + 2, Version: 2},
		},
		"blocked": {
			{Kind: ledger.TrustStatus, Version: 2, Present: true, Status: &ledger.Status{Blocked: true, Reasons: []ledger.Reason{
				{Code: ledger.Ambiguous, TxnID: "T-1", Revision: 300}, {Code: ledger.CountsDisagree, Day: day}}}},
		},
		"edges": {
			{Kind: ledger.Alert, Day: ledger.MinDay, Version: ledger.MaxCounter, Present: true, Close: -1 << 63, Previous: 1<<63 - 1},
			{Kind: ledger.Balance, Day: ledger.MinDay + 31, Version: 1},
		},
	}
	bodies := goldenBodies(t)
	if len(bodies) != len(want) {
		t.Fatalf("%d golden bodies, want %d", len(bodies), len(want))
	}
	for name, changes := range want {
		body, ok := bodies[name]
		if !ok {
			t.Errorf("%s: no golden body", name)
			continue
		}
		if got := AppendBody(nil, changes); !bytes.Equal(got, body) {
			t.Errorf("%s: encoded % x, golden % x", name, got, body)
		}
		got, err := DecodeBody(body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(changes, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// goldenBodies reads "= name" lines, each followed by lines of hex with comments; the checksum is not written there but
// computed bit by bit, as no hand can.
func goldenBodies(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/bodies.txt")
	if err != nil {
		t.Fatal(err)
	}
	out, name := map[string][]byte{}, ""
	for _, row := range strings.Split(string(text), "\n") {
		row, _, _ = strings.Cut(row, "#")
		if strings.HasPrefix(row, "= ") {
			name = strings.TrimSpace(row[2:])
			out[name] = nil
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(row), " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		out[name] = append(out[name], b...)
	}
	delete(out, "")
	for name, b := range out {
		out[name] = binary.BigEndian.AppendUint32(b, crc32c(b))
	}
	return out
}

// crc32c is the checksum by its definition.
func crc32c(b []byte) uint32 {
	sum := ^uint32(0)
	for _, c := range b {
		sum ^= uint32(c)
		for range 8 {
			sum = sum>>1 ^ 0x82f63b78*(sum&1)
		}
	}
	return ^sum
}

func genChanges() *rapid.Generator[[]ledger.Change] {
	return rapid.Custom(func(t *rapid.T) []ledger.Change {
		var out []ledger.Change
		at := ledger.Day(0)
		for range rapid.IntRange(0, 12).Draw(t, "days") {
			at += ledger.Day(rapid.OneOf(rapid.IntRange(1, 3), rapid.IntRange(29, 33), rapid.IntRange(1, 200_000)).Draw(t, "step"))
			for kind := ledger.Balance; kind <= ledger.Alert; kind++ {
				if !rapid.Bool().Draw(t, "has") {
					continue
				}
				c := ledger.Change{Kind: kind, Day: at, Version: ledger.Version(rapid.Int64Range(1, ledger.MaxCounter).Draw(t, "version"))}
				if c.Present = rapid.Bool().Draw(t, "present"); c.Present {
					c.Close = rapid.Int64().Draw(t, "close")
					if kind == ledger.Alert {
						c.Previous = rapid.Int64().Draw(t, "previous")
					}
				}
				out = append(out, c)
			}
		}
		if rapid.Bool().Draw(t, "status") {
			out = append(out, ledger.Change{Kind: ledger.TrustStatus, Version: 3, Present: true, Status: genStatus().Draw(t, "payload")})
		}
		return out
	})
}

func genStatus() *rapid.Generator[*ledger.Status] {
	return rapid.Custom(func(t *rapid.T) *ledger.Status {
		s := &ledger.Status{}
		for range rapid.IntRange(0, ledger.MaxReasons).Draw(t, "ambiguous") {
			s.Reasons = append(s.Reasons, ledger.Reason{Code: ledger.Ambiguous, Revision: ledger.Revision(rapid.Int64Range(1, ledger.MaxCounter).Draw(t, "revision")),
				TxnID: rapid.StringN(1, 100, ledger.MaxIdentifierBytes).Draw(t, "txn_id")})
		}
		if rapid.Bool().Draw(t, "day") {
			s.Reasons = append(s.Reasons, ledger.Reason{Code: ledger.CountsDisagree, Day: ledger.Day(rapid.IntRange(1, int(ledger.MaxDay)).Draw(t, "on"))})
		}
		if s.Blocked = len(s.Reasons) > 0; s.Blocked {
			s.More = rapid.Int64Range(0, ledger.MaxCounter).Draw(t, "more")
		}
		return s
	})
}

func TestBodyRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := genChanges().Draw(t, "changes")
		prefix := []byte("before")
		body := AppendBody(prefix, want)[len(prefix):]
		got, err := DecodeBody(body)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

// TestDamagedBodies is I20 for the body alone: no changed, added or missing byte goes unnoticed.
func TestDamagedBodies(t *testing.T) {
	t.Parallel()
	for name, body := range goldenBodies(t) {
		for i := range body {
			for bit := range 8 {
				bad := bytes.Clone(body)
				bad[i] ^= 1 << bit
				_, err := DecodeBody(bad)
				if want := map[bool]error{true: ErrFormat, false: ErrChecksum}[i == 0]; !errors.Is(err, want) {
					t.Errorf("%s byte %d bit %d: %v, want %v", name, i, bit, err, want)
				}
			}
			if _, err := DecodeBody(body[:i]); !errors.Is(err, ErrChecksum) {
				t.Errorf("%s cut to %d bytes: %v", name, i, err)
			}
		}
		if _, err := DecodeBody(append(bytes.Clone(body), 0)); !errors.Is(err, ErrChecksum) {
			t.Errorf("%s with a byte more: %v", name, err)
		}
	}
}

// TestImpossibleBodies: bytes with a right checksum that no list of changes has.
func TestImpossibleBodies(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"kind 0":                    "01 0c 01 00",
		"version 0":                 "01 0d 00 00",
		"version beyond 2^63-1":     "01 0d ff ff ff ff ff ff ff ff ff 01 00",
		"day 0":                     "01 05 01 00",
		"day beyond the calendar":   "01 fd ff ff ff 01 01 00",
		"balance twice":             "01 0d 01 00 05 02 00",
		"balance after the alert":   "01 0e 01 00 00 05 01 00",
		"status withdrawn":          "01 03 01",
		"status with a day":         "01 0f 01 00",
		"something after a status":  "01 07 01 00 0d 01 00",
		"status twice":              "01 07 01 00 07 02 00",
		"ready with reasons":        "01 07 01 02 02 01",
		"blocked without reasons":   "01 07 01 01 00",
		"too many reasons":          "01 07 01 25" + strings.Repeat(" 02 01", 18) + " 00",
		"unknown reason":            "01 07 01 03 04 01 00",
		"reason with day 0":         "01 07 01 03 02 00 00",
		"reason without revision":   "01 07 01 03 01 01 41 00 00",
		"reason without a txn_id":   "01 07 01 03 01 00 01 00",
		"number not in its minimum": "01 0d 81 00 00",
		"number cut off":            "01 0d 80",
		"number of 11 bytes":        "01 0d 80 80 80 80 80 80 80 80 80 80 01 00",
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		b = binary.BigEndian.AppendUint32(b, crc32c(b))
		if got, err := DecodeBody(b); !errors.Is(err, ErrChecksum) || got != nil {
			t.Errorf("%s: %v %v, want ErrChecksum", name, got, err)
		}
	}
}

// TestAppendChangesKeepsWhatWasThere: a damaged body adds nothing.
func TestAppendChangesKeepsWhatWasThere(t *testing.T) {
	t.Parallel()
	have := []ledger.Change{{Kind: ledger.Balance, Day: 1, Version: 1}}
	bad := []byte{1, 0x0d, 1, 0, 0x05}
	bad = binary.BigEndian.AppendUint32(bad, crc32c(bad))
	got, err := AppendChanges(have, bad)
	if err == nil || len(got) != 1 {
		t.Errorf("%v %v", got, err)
	}
}

// TestFewBytes: a repair of consecutive days costs at most 6 bytes an output.
func TestFewBytes(t *testing.T) {
	t.Parallel()
	var repair []ledger.Change
	for i := range 365 {
		repair = append(repair, ledger.Change{Kind: ledger.Balance, Day: ledger.Day(739_617 + i), Version: ledger.Version(1 + i%90), Present: true, Close: int64(100_000 + 37*i*(i%5-2))})
	}
	if n := len(AppendBody(nil, repair)); n > 6*len(repair) {
		t.Errorf("%d bytes for %d outputs", n, len(repair))
	}
}

func FuzzDecodeBody(f *testing.F) {
	f.Add(AppendBody(nil, nil), true)
	f.Add(AppendBody(nil, []ledger.Change{{Kind: ledger.Balance, Day: 739_617, Version: 1, Present: true, Close: 5}, {Kind: ledger.Alert, Day: 739_617, Version: 2}}), true)
	f.Add([]byte{1, 7, 1, 3, 1, 1, 'A', 1, 0}, false)
	f.Fuzz(func(t *testing.T, body []byte, whole bool) {
		if !whole { // let the fuzzer past the checksum
			body = append([]byte{1}, body...)
			body = binary.BigEndian.AppendUint32(body, Checksum(body))
		}
		changes, err := DecodeBody(body)
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrChecksum) {
				t.Fatalf("unclassified error %v", err)
			}
			return
		}
		if got := AppendBody(nil, changes); !bytes.Equal(got, body) {
			t.Fatalf("accepted % x, which is written % x", body, got)
		}
	})
}

func BenchmarkAppendBody(b *testing.B) {
	changes := make([]ledger.Change, 28)
	for i := range changes {
		changes[i] = ledger.Change{Kind: ledger.Balance, Day: ledger.Day(739_617 + i), Version: 3, Present: true, Close: int64(1000 + 17*i)}
	}
	var buf []byte
	for b.Loop() {
		buf = AppendBody(buf[:0], changes)
	}
	b.ReportMetric(float64(len(buf))/28, "bytes/output")
}

func BenchmarkAppendChanges(b *testing.B) {
	changes := make([]ledger.Change, 28)
	for i := range changes {
		changes[i] = ledger.Change{Kind: ledger.Balance, Day: ledger.Day(739_617 + i), Version: 3, Present: true, Close: int64(1000 + 17*i)}
	}
	body := AppendBody(nil, changes)
	var buf []ledger.Change
	for b.Loop() {
		buf, _ = AppendChanges(buf[:0], body)
	}
}
