package oracle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"amends/internal/absent"
	"amends/internal/ledger"

	"github.com/google/go-cmp/cmp"
)

// vectorConfig is a vector's config.json, read by the standard library and not by the project.
type vectorConfig struct {
	Origin     string `json:"ledger_origin"`
	Partitions int32  `json:"partitions"`
	Keys       []struct {
		Item      string `json:"item"`
		Location  string `json:"location"`
		Partition int32  `json:"partition"`
		Opening   int64  `json:"opening_balance"`
		Threshold *int64 `json:"threshold"`
	} `json:"stock_keys"`
	Open *struct {
		Opening   int64  `json:"opening_balance"`
		Threshold *int64 `json:"threshold"`
	} `json:"open_keys"`
}

type vectorRecord struct {
	Partition ledger.Partition `json:"partition"`
	Key       *[]byte          `json:"key"`
	Value     *[]byte          `json:"value"`
}

func (r vectorRecord) bytes() (key, value []byte) {
	if r.Key != nil {
		key = append([]byte{}, *r.Key...)
	}
	if r.Value != nil {
		value = append([]byte{}, *r.Value...)
	}
	return key, value
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func loadConfig(t testing.TB, path string) Config {
	t.Helper()
	var v vectorConfig
	if err := json.Unmarshal(read(t, path), &v); err != nil {
		t.Fatal(err)
	}
	origin, ok := ledger.ParseDay(v.Origin)
	if !ok {
		t.Fatalf("origin %q", v.Origin)
	}
	cfg := Config{Origin: origin, Partitions: v.Partitions}
	for _, k := range v.Keys {
		cfg.Keys = append(cfg.Keys, Key{Key: ledger.StockKey{Item: k.Item, Location: k.Location}, Partition: ledger.Partition(k.Partition),
			Terms: Terms{Opening: k.Opening, Threshold: k.Threshold}})
	}
	if v.Open != nil {
		cfg.Open = &Terms{Opening: v.Open.Opening, Threshold: v.Open.Threshold}
	}
	return cfg
}

func loadRecords(t testing.TB, path string) (records []vectorRecord) {
	t.Helper()
	for line := range bytes.Lines(read(t, path)) {
		var r vectorRecord
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}

// published reads envelopes.tsv and keeps the last payload of each output; withdrawn outputs are absent.
func published(t testing.TB, path string) map[string]string {
	t.Helper()
	last := map[string]string{}
	for line := range strings.Lines(string(read(t, path))) {
		_, envelope, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		var e struct {
			Output  []string        `json:"output"`
			Present bool            `json:"present"`
			Payload json.RawMessage `json:"payload"`
		}
		if err := json.Unmarshal([]byte(envelope), &e); err != nil {
			t.Fatal(err)
		}
		id := strings.Join(e.Output, "\x01")
		if delete(last, id); e.Present {
			last[id] = normal(t, e.Payload)
		}
	}
	return last
}

// normal writes JSON with members in the order of their names.
func normal(t testing.TB, b []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// outputs writes an expectation in the form of published.
func outputs(t testing.TB, e Expectation) map[string]string {
	t.Helper()
	all := map[string]string{}
	id := func(kind string, day ledger.Day) string {
		return strings.Join([]string{kind, e.Key.Item, e.Key.Location, day.String()}, "\x01")
	}
	for _, b := range e.Balances {
		all[id("balance", b.Day)] = fmt.Sprintf(`{"close":%d}`, b.Close)
	}
	for _, a := range e.Alerts {
		all[id("alert", a.Day)] = fmt.Sprintf(`{"close":%d,"previous":%d,"threshold":%d}`, a.Close, a.Previous, a.Threshold)
	}
	status := map[string]any{"status": "READY", "reasons": []any{}, "more": e.Status.More}
	if e.Status.Blocked {
		status["status"] = "BLOCKED"
		reasons := []any{}
		for _, r := range e.Status.Reasons {
			m := map[string]any{"code": r.Code.String()}
			if r.Code == ledger.Ambiguous {
				m["txn_id"], m["revision"] = r.TxnID, r.Revision
			} else {
				m["day"] = r.Day.String()
			}
			reasons = append(reasons, m)
		}
		status["reasons"] = reasons
	}
	b, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	all["status\x01"+e.Key.Item+"\x01"+e.Key.Location] = normal(t, b)
	return all
}

func TestVectors(t *testing.T) {
	root := absent.Vectors(t)
	folders, err := filepath.Glob(filepath.Join(root, "*", "raw.jsonl"))
	if err != nil || len(folders) < 14 {
		t.Fatalf("found %d vectors (%v), want at least 14", len(folders), err)
	}
	for _, f := range folders {
		dir := filepath.Dir(f)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			o := New(loadConfig(t, filepath.Join(dir, "config.json")))
			next := map[ledger.Partition]ledger.Offset{}
			rejected := map[string]bool{}
			for _, r := range loadRecords(t, f) {
				key, value := r.bytes()
				at := next[r.Partition]
				next[r.Partition]++
				if v := o.Add(r.Partition, at, key, value); v.Rejection != 0 {
					rejected[fmt.Sprintf("%d\t%d\t%s", r.Partition, at, v.Rejection)] = true
				}
			}
			want := map[string]bool{}
			for line := range strings.Lines(string(read(t, filepath.Join(dir, "rejected.tsv")))) {
				want[strings.TrimSuffix(line, "\n")] = true
			}
			if d := cmp.Diff(want, rejected); d != "" {
				t.Errorf("rejections (-vector +oracle):\n%s", d)
			}
			compareOutputs(t, o, published(t, filepath.Join(dir, "envelopes.tsv")))
		})
	}
}

// compareOutputs compares every output of the keys that are READY, and the status alone of those that are BLOCKED.
func compareOutputs(t *testing.T, o *Oracle, topic map[string]string) {
	t.Helper()
	want, got := map[string]string{}, map[string]string{}
	blocked := map[string]bool{}
	for e := range o.All() {
		if e.Status.Blocked {
			blocked[e.Key.Item+"\x01"+e.Key.Location] = true
		}
		for id, payload := range outputs(t, e) {
			got[id] = payload
		}
	}
	for id, payload := range topic {
		parts := strings.Split(id, "\x01")
		if parts[0] == "status" || !blocked[parts[1]+"\x01"+parts[2]] {
			want[id] = payload
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("outputs (-vector +oracle):\n%s", d)
	}
}
