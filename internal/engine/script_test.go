package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/manifest"
)

// TestScripts runs the scenarios and cases that are data. A script in testdata/scripts is
//
//	# comment
//	key NAME opening N threshold N|none      configures a key; widget/berlin with 0 and 60 where no script line does
//	> [NAME] T-1 r1 receipt 100 @1           a record: kind, quantity and business day, or "cancelled"
//	APPLIED                                  its class, then its outputs in order
//	balance @1 v1 100
//	alert @3 v1 80 -> 50
//	balance @1 v2 withdrawn
//	status v1 BLOCKED AMBIGUOUS T-1 r1
//
// Every expected line is derived by hand from semantics.md.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			runScript(t, file)
		})
	}
}

func runScript(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var keys []manifest.StockKey
	var got, want []string
	var l *line
	for n, text := range strings.Split(string(text), "\n") {
		text = strings.TrimSpace(strings.SplitN(text, "#", 2)[0])
		switch {
		case text == "":
		case strings.HasPrefix(text, "key "):
			keys = append(keys, scriptKey(t, n, strings.Fields(text)))
		case strings.HasPrefix(text, ">"):
			if l == nil {
				if keys == nil {
					keys = append(keys, manifest.StockKey{Key: widget, Terms: terms(0, sixty())})
				}
				l = newLine(t, config(t, keys...), 0, roomy)
			}
			got, want = append(got, text), append(want, text)
			a := scriptRecord(t, n, strings.Fields(text[1:]), keys)
			for _, d := range l.step(l.record(ledger.Offset(l.pos.Frontier), a)) {
				got = append(got, d.Class.String())
				for _, c := range d.Changes {
					got = append(got, describe(c))
				}
			}
		default:
			want = append(want, strings.Join(strings.Fields(text), " "))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-hand-derived +engine):\n%s", file, diff)
	}
}

func scriptKey(t *testing.T, n int, f []string) manifest.StockKey {
	k := manifest.StockKey{Key: ledger.StockKey{Item: f[1], Location: "berlin"}}
	k.OpeningBalance = scriptNumber(t, n, f[3])
	if f[5] != "none" {
		threshold := scriptNumber(t, n, f[5])
		k.Threshold = &threshold
	}
	return k
}

func scriptRecord(t *testing.T, n int, f []string, keys []manifest.StockKey) ledger.Assertion {
	a := ledger.Assertion{Key: keys[0].Key}
	for _, k := range keys {
		if f[0] == k.Key.Item {
			a.Key, f = k.Key, f[1:]
			break
		}
	}
	a.TxnID, a.Revision = f[0], ledger.Revision(scriptNumber(t, n, f[1][1:]))
	if f[2] == "cancelled" {
		a.Payload.State = ledger.Cancelled
		return a
	}
	kind, ok := ledger.ParseKind(f[2])
	if !ok {
		t.Fatalf("line %d: kind %s", n+1, f[2])
	}
	a.Payload = ledger.Payload{State: ledger.Active, Kind: kind, Quantity: ledger.Quantity(scriptNumber(t, n, f[3])), Day: day(int(scriptNumber(t, n, f[4][1:])))}
	return a
}

func scriptNumber(t *testing.T, n int, s string) int64 {
	t.Helper()
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(fmt.Errorf("line %d: %w", n+1, err))
	}
	return v
}
