package intake

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"amends/internal/absent"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/provision"
	"amends/internal/wire"
	"amends/internal/workload"
)

// namespace returns a manifest of open keys, with a scale.
func namespace(t testing.TB, origin string, scale int) *manifest.Manifest {
	t.Helper()
	text := fmt.Sprintf(`{"source_topic":"stock","config":{"schema_version":1,"namespace":"demo","source_incarnation":"kafka:00112233445566778899aabbccddeeff",
		"ledger_origin":%q,"partitions":2,"quantity_scale":%d,"stock_keys":[],"open_keys":{"opening_balance":0,"threshold":null}}}`, origin, scale)
	m, err := manifest.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func opened(t testing.TB, path, mapping string, m *manifest.Manifest) *File {
	t.Helper()
	f, err := Open(path, mapping, m)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// dryRun validates a file as the command does.
func dryRun(t testing.TB, f *File) error {
	t.Helper()
	l := provision.Load{Manifest: f.Manifest, Path: f.Path, Options: provision.Options{Rows: f.Rows}}
	_, err := l.Check(t.Context())
	return err
}

// all returns every assertion of a file; a row with a problem ends the test.
func all(t testing.TB, f *File) []ledger.Assertion {
	t.Helper()
	rows, err := f.Rows()
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []ledger.Assertion
	for {
		row, err := rows.Next()
		if err != nil {
			return out
		}
		if row.Problems != nil {
			t.Fatal(row.Problems)
		}
		for _, v := range row.Values {
			a, code, fault := wire.ParseValue(bytes.Clone(v))
			if code != 0 {
				t.Fatalf("%s: %v", v, fault)
			}
			out = append(out, a)
		}
	}
}

const simple = `version: 1
item: "{sku}"
location: "{site}"
txn_id: "{id}"
revision: 1
day: "{day}"
quantity: "{n}"
kind: receipt
`

const header = "sku,site,id,day,n\n"

func TestSurveySaysWhatAFileHolds(t *testing.T) {
	t.Parallel()
	text := header + "a,x,1,2026-01-03,5\na,x,2,2026-01-02,1.5\nb,x,3,2026-01-05,2\na,x,1,2026-01-03,5.00\n"
	f := opened(t, write(t, "stock.csv", text), write(t, "map.yaml", simple), namespace(t, "2026-01-01", 2))
	if err := dryRun(t, f); err != nil {
		t.Fatal(err)
	}
	s := f.Survey()
	if s.Rows != 4 || s.Records != 4 || s.Keys != 2 || s.Same != 1 || s.Kinds["receipt"] != 4 || s.FirstDay.String() != "2026-01-02" || s.LastDay.String() != "2026-01-05" {
		t.Errorf("%+v", s)
	}
	if got := string(s.First[1].Value); len(s.First) != 4 || s.First[1].Line != 3 || got != `{"schema":1,"txn_id":"2","revision":1,"state":"active","item":"a","location":"x","day":"2026-01-02","kind":"receipt","quantity":150}` {
		t.Errorf("%d samples, the second %s", len(s.First), got)
	}
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte(text))); s.Digest != want {
		t.Errorf("digest %s, want %s", s.Digest, want)
	}
}

// Every fault of a file is a problem at its line, and nothing but the file is looked at.
func TestProblemsByLine(t *testing.T) {
	t.Parallel()
	good := "a,x,%d,2026-01-03,5\n"
	for name, c := range map[string]struct{ row, want string }{
		"wrong date":         {"a,x,9,03.01.2026,5\n", `line 3: day "03.01.2026" is no date as YYYY-MM-DD`},
		"no such day":        {"a,x,9,2026-02-30,5\n", `line 3: day "2026-02-30" is no date`},
		"before the origin":  {"a,x,9,2025-12-31,5\n", "line 3: OUT_OF_HORIZON: day 2025-12-31"},
		"decimals":           {"a,x,9,2026-01-03,5.125\n", `line 3: quantity "5.125" has more than 2 decimal places`},
		"nothing":            {"a,x,9,2026-01-03,0.00\n", `line 3: quantity "0.00" of receipt is 0`},
		"too much":           {"a,x,9,2026-01-03,92233720368547758.08\n", "line 3: quantity"},
		"too few fields":     {"a,x,9\n", "line 3: the row has 3 fields, the file has 5 columns"},
		"an open quote":      {"\"a,x,9,2026-01-03,5\n", "line 3 column 21: a quote is not closed"},
		"another encoding":   {"B\xfccher,x,9,2026-01-03,5\n", `line 3: column "sku" holds byte 0xFC after "B"`},
		"another content":    {"a,x,1,2026-01-03,6\n", `line 3: transaction "1" of item "a" at location "x" has revision 1 already, with another content`},
		"all of a row":       {",,9,2025-02-30,5.125\n", `line 3: quantity "5.125" has more than 2 decimal places, which is the namespace's quantity_scale; day "2025-02-30" is no date as YYYY-MM-DD; item "" is not 1 to 512 bytes of text; location ""`},
		"an empty item":      {",x,9,2026-01-03,5\n", `line 3: item "" is not 1 to 512 bytes`},
		"a large identifier": {strings.Repeat("é", 257) + ",x,9,2026-01-03,5\n", "line 3: item"},
	} {
		text := header + fmt.Sprintf(good, 1) + c.row
		if name != "an open quote" {
			text += fmt.Sprintf(good, 2)
		}
		f := opened(t, write(t, "stock.csv", text), write(t, "map.yaml", simple), namespace(t, "2026-01-01", 2))
		err := dryRun(t, f)
		var refused *provision.RefusedFile
		if !errors.As(err, &refused) || refused.Count != 1 || !strings.HasPrefix(refused.Problems[0].String(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestUnknownKeysAreNamed(t *testing.T) {
	t.Parallel()
	m, err := manifest.Parse([]byte(`{"source_topic":"stock","config":{"schema_version":1,"namespace":"demo","source_incarnation":"kafka:00112233445566778899aabbccddeeff",
		"ledger_origin":"2026-01-01","partitions":1,"quantity_scale":0,"stock_keys":[{"item":"a","location":"x","partition":0,"opening_balance":0,"threshold":null}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	f := opened(t, write(t, "stock.csv", header+"a,x,1,2026-01-03,5\nb,x,2,2026-01-03,5\nA,x,3,2026-01-03,5\nb,x,4,2026-01-03,5\n"), write(t, "map.yaml", simple), m)
	var refused *provision.RefusedFile
	if err := dryRun(t, f); !errors.As(err, &refused) || refused.Codes["UNKNOWN_KEY"] != 3 || refused.Count != 3 {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]ledger.StockKey{{Item: "A", Location: "x"}, {Item: "b", Location: "x"}}, f.Survey().UnknownKeys()); diff != "" {
		t.Error(diff)
	}
	if s := f.Survey().First; !s[0].Routed || s[1].Routed {
		t.Errorf("%+v", s)
	}
}

func TestWhatCannotBeUsedIsRefused(t *testing.T) {
	t.Parallel()
	csv, mapping := write(t, "stock.csv", header), write(t, "map.yaml", simple)
	m := namespace(t, "2026-01-01", 0)
	for name, c := range map[string]struct{ file, mapping, want string }{
		"no mapping":       {csv, csv + ".none", "open mapping file"},
		"a folder":         {csv, filepath.Dir(csv), "not a regular file"},
		"a broken mapping": {csv, write(t, "map.yaml", "version: 1\nitme: x\n"), `map.yaml: line 2: unknown name "itme"`},
		"a large mapping":  {csv, write(t, "map.yaml", strings.Repeat("#", maxMapping+1)), "this is no mapping file"},
		"no file":          {csv + ".none", mapping, "open file"},
		"a device":         {"/dev/null", mapping, "not a regular file"},
		"an empty file":    {write(t, "stock.csv", ""), mapping, "stock.csv: the file has no rows"},
		"other columns":    {write(t, "stock.csv", "a,b\n1,2\n"), mapping, `line 2: item: the file has no column "sku"; its columns: "a", "b"`},
	} {
		f, err := Open(c.file, c.mapping, m)
		if err == nil {
			err = dryRun(t, f)
		}
		var refused *Refused
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// A dry run notices what only people can judge.
func TestNotes(t *testing.T) {
	t.Parallel()
	f := opened(t, write(t, "stock.csv", header+"a,x,1,2026-01-03,5\nBücher,x,2,2026-01-03,5\n"), write(t, "map.yaml", simple+"encoding: windows-1252\n"), namespace(t, "2026-01-01", 0))
	if err := dryRun(t, f); err != nil || f.Survey().Foreign != 1 || f.Survey().ForeignLine != 3 {
		t.Errorf("%v %+v", err, f.Survey())
	}
	f = opened(t, write(t, "stock.csv", header+"a,x,1,2026-01-03,5\na,x,1,2026-01-03,6\n"), write(t, "map.yaml", simple+"repeats: allow\n"), namespace(t, "2026-01-01", 0))
	if err := dryRun(t, f); err != nil {
		t.Errorf("repeats that are allowed: %v", err)
	}
}

// The mapping of the Northwind dump says the same assertions as the converter of package workload, which shares nothing
// with it but the types.
func TestNorthwindMapping(t *testing.T) {
	t.Parallel()
	path := absent.Data(t, "northwind/northwind-data.sql")
	got := all(t, opened(t, path, "../../fixtures/mappings/northwind.yaml", namespace(t, "2006-01-01", 0)))
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	d, err := workload.ReadNorthwind(in)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(d.Assertions)
	order := func(a, b ledger.Assertion) int {
		return cmp.Or(a.Key.Compare(b.Key), cmp.Compare(a.TxnID, b.TxnID), cmp.Compare(a.Revision, b.Revision))
	}
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if diff := gocmp.Diff(want, got); diff != "" || len(got) != 141 {
		t.Errorf("%d assertions: %s", len(got), diff)
	}
}

// The retail mapping leaves the same stock of every key as the scenario that looks for the sale of each cancellation:
// a cancellation takes units back either way, on another day.
func TestRetailMapping(t *testing.T) {
	t.Parallel()
	path := absent.Data(t, "online-retail-top60/online-retail-top60-cancelled-stockcodes.csv")
	got := all(t, opened(t, path, "../../fixtures/mappings/online-retail.yaml", namespace(t, "2010-12-01", 0)))
	if len(got) != 45_085 {
		t.Errorf("%d assertions", len(got))
	}
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	d, err := workload.ReadRetail(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(totals(d.Assertions), totals(got)); diff != "" {
		t.Error(diff)
	}
	kinds := map[ledger.Kind]int{}
	for _, a := range got {
		kinds[a.Payload.Kind]++
	}
	if diff := gocmp.Diff(map[ledger.Kind]int{ledger.Receipt: 2487, ledger.Issue: 42_598}, kinds); diff != "" { // the README of the data says 2,487 cancellation rows
		t.Error(diff)
	}
}

// totals folds assertions by hand: the highest revision of each transaction, summed by key.
func totals(assertions []ledger.Assertion) map[ledger.StockKey]int64 {
	type txn struct {
		key ledger.StockKey
		id  string
	}
	last := map[txn]ledger.Assertion{}
	for _, a := range assertions {
		k := txn{a.Key, a.TxnID}
		if before, ok := last[k]; !ok || a.Revision > before.Revision {
			last[k] = a
		}
	}
	out := map[ledger.StockKey]int64{}
	for k, a := range last {
		out[k.key] += a.Payload.Units()
	}
	return out
}

func begin(t *testing.T, j *Journal, f *File, anew bool) (int64, error) {
	t.Helper()
	f.survey = nil
	if err := dryRun(t, f); err != nil {
		t.Fatal(err)
	}
	return j.Begin(f, anew)
}

func TestJournal(t *testing.T) {
	t.Parallel()
	m := namespace(t, "2026-01-01", 0)
	csv, mapping := write(t, "stock.csv", header+"a,x,1,2026-01-03,5\n"), write(t, "map.yaml", simple)
	f := opened(t, csv, mapping, m)
	path := csv + ".progress"
	at := time.Unix(1000, 0)
	newJournal := func() *Journal {
		j := OpenJournal(path)
		j.now = func() time.Time { return at }
		return j
	}
	j := newJournal()
	if after, err := begin(t, j, f, false); after != 0 || err != nil {
		t.Fatalf("a new import begins after %d, %v", after, err)
	}
	for _, step := range []struct{ line, stored int64 }{{10, 0}, {20, 20}, {30, 20}} { // at most once a second
		if err := j.Acknowledged(step.line); err != nil {
			t.Fatal(err)
		}
		if after, err := begin(t, newJournal(), f, false); after != step.stored || err != nil {
			t.Errorf("after line %d: %d %v, want %d", step.line, after, err, step.stored)
		}
		at = at.Add(time.Second)
		if step.line == 20 {
			at = at.Add(-time.Second)
		}
	}
	if err := j.End(false); err != nil {
		t.Fatal(err)
	}
	if after, err := begin(t, newJournal(), f, false); after != 30 || err != nil {
		t.Errorf("stopped at 30, goes on after %d, %v", after, err)
	}
	changed := opened(t, write(t, "other.csv", header+"a,x,1,2026-01-03,6\n"), mapping, m)
	for want, other := range map[string]*File{"the file has changed": changed,
		"the mapping has changed":  opened(t, csv, write(t, "map.yaml", simple+"# a word\n"), m),
		"configuration is another": opened(t, csv, mapping, namespace(t, "2025-01-01", 0))} {
		var refused *Refused
		if _, err := begin(t, newJournal(), other, false); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	another := *m
	config := *m.Config
	config.SourceIncarnation = "kafka:ffffffffffffffffffffffffffffffff"
	another.Config = &config
	if _, err := begin(t, newJournal(), opened(t, csv, mapping, &another), false); err == nil || !strings.Contains(err.Error(), "source topic is another") {
		t.Errorf("%v", err)
	}
	if after, err := begin(t, newJournal(), changed, true); after != 0 || err != nil {
		t.Errorf("anew: %d %v", after, err)
	}
	done := newJournal()
	if _, err := begin(t, done, f, true); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(done.Acknowledged(2), done.End(true)); err != nil || done.Line() != 2 {
		t.Fatal(err)
	}
	if _, err := begin(t, newJournal(), f, false); !errors.Is(err, ErrComplete) {
		t.Errorf("a finished import: %v", err)
	}
	if after, err := begin(t, newJournal(), changed, false); after != 0 || err != nil {
		t.Errorf("another file after a finished import: %d %v", after, err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.new"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestJournalsThatCannotBe(t *testing.T) {
	t.Parallel()
	m := namespace(t, "2026-01-01", 0)
	f := opened(t, write(t, "stock.csv", header+"a,x,1,2026-01-03,5\n"), write(t, "map.yaml", simple), m)
	for name, path := range map[string]string{"other content": write(t, "p", "{}"), "no JSON": write(t, "p", "x"), "a folder": t.TempDir(), "no such folder": "/nonexistent/p"} {
		var refused *Refused
		if _, err := begin(t, OpenJournal(path), f, false); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
