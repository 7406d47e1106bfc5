package restore_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"amends/internal/workload"
)

const compare = "compare -manifest @pipeline.json -with @rebuilt.json"

// compared is the part of compare's JSON that the tests read.
type compared struct {
	Result   string
	A, B     struct{ Present, Withdrawn int }
	SameCuts bool `json:"same_cuts"`
	Equal    int
	// Differences count and name what differs.
	Differences struct {
		Count, Value int
		OnlyA        int `json:"only_a"`
		OnlyB        int `json:"only_b"`
		First        *struct {
			What   string
			Output []string
		}
	}
	Configuration []string
}

func (w *world) compare(code int, line string) compared {
	w.t.Helper()
	a := w.want(code, "", line+" -o json")
	var c compared
	if err := json.Unmarshal([]byte(a.Stdout), &c); err != nil {
		w.t.Fatalf("%v: %s", err, a.Stdout)
	}
	return c
}

// viewRow is a view row as SQL gives it.
type viewRow struct {
	Item, Location []byte
	Day            string
	Kind           int
	Present        bool
	Payload        string
	Partition      int
}

func (w *world) viewRows(namespace string) map[string]viewRow {
	w.t.Helper()
	rows, err := w.conn.Query(w.t.Context(), `SELECT k.item, k.location, v.day::text, v.kind::integer, v.present,
			concat_ws(' ', v.close, v.previous, v.threshold, v.status), v.partition
		FROM amends.view_rows AS v JOIN amends.view_keys AS k USING (namespace_id, partition, key_id) JOIN amends.namespaces AS n USING (namespace_id)
		WHERE n.namespace = $1`, namespace)
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[viewRow])
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]viewRow{}
	for _, r := range all {
		// The order of reports: partition, item bytes, location bytes, day with the status last, kind. No identifier of one
		// is a prefix of another with a byte below its end.
		out[fmt.Sprintf("%04d %x. %x. %s %d", r.Partition, r.Item, r.Location, strings.Replace(r.Day, "infinity", "~", 1), r.Kind)] = r
	}
	return out
}

// history publishes a random history with everything a source can hold, hostile identifiers and poison included.
func (w *world) history(h *workload.History) {
	w.t.Helper()
	var b strings.Builder
	encode := func(raw []byte) string {
		if raw == nil {
			return "null"
		}
		return `"` + base64.StdEncoding.EncodeToString(raw) + `"`
	}
	for _, r := range h.Records {
		fmt.Fprintf(&b, `{"partition":%d,"key":%s,"value":%s}`+"\n", r.Partition, encode(r.Key), encode(r.Value))
	}
	w.Write("history.raw", b.String())
}

// A rebuild of a random history equals it, blocked keys included; and whatever is then changed in one view is counted and
// named as a comparison of both in maps gives it.
func TestCompareFindsEveryDifference(t *testing.T) {
	t.Parallel()
	o := workload.DefaultHistory(7)
	o.Records, o.Keys, o.Gaps = 1500, 12, false
	h := workload.NewHistory(o)
	w := newWorld(t, string(h.Setting.AppendFile(nil, "shop")))
	w.history(h)
	w.filled("-file @history.raw -format raw", 4)
	w.want(4, "", rebuild+" -execute")
	if c := w.compare(0, compare); c.Result != "EQUAL" || c.Differences.Count != 0 || c.Equal != c.A.Present || c.A != c.B || !c.SameCuts {
		t.Fatalf("%+v", c)
	}
	w.exec("CREATE TABLE kept AS SELECT v.* FROM amends.view_rows AS v JOIN amends.rebuilds USING (namespace_id)")
	for _, column := range []string{"close", "previous", "threshold"} {
		alerts := w.read("SELECT count(*)::text FROM kept WHERE kind = 2 AND present")
		w.exec("UPDATE amends.view_rows AS v SET " + column + " = " + column + " # 1 FROM amends.rebuilds AS r WHERE r.namespace_id = v.namespace_id AND kind = 2 AND present")
		if c := w.compare(5, compare); fmt.Sprint(c.Differences.Value) != alerts || fmt.Sprint(c.Differences.Count) != alerts || alerts == "0" {
			t.Errorf("%s of %s alerts: %+v", column, alerts, c.Differences)
		}
		w.exec("UPDATE amends.view_rows AS v SET " + column + " = " + column + " # 1 FROM amends.rebuilds AS r WHERE r.namespace_id = v.namespace_id AND kind = 2 AND present")
	}
	random := rand.New(rand.NewPCG(7, 7))
	for round := range 12 {
		w.tamper(random, 1+round*3)
		a, b := w.viewRows("shop"), w.viewRows("shop2")
		want := map[string]string{}
		for id, r := range a {
			s := b[id]
			switch {
			case r.Present && !s.Present:
				want[id] = "ONLY_A"
			case r.Present && r.Payload != s.Payload:
				want[id] = "VALUE"
			}
		}
		for id, s := range b {
			if s.Present && !a[id].Present {
				want[id] = "ONLY_B"
			}
		}
		code := 5
		if len(want) == 0 {
			code = 0
		}
		c := w.compare(code, compare)
		got := c.Differences
		count := map[string]int{"VALUE": 0, "ONLY_A": 0, "ONLY_B": 0}
		for _, what := range want {
			count[what]++
		}
		if d := cmp.Diff(count, map[string]int{"VALUE": got.Value, "ONLY_A": got.OnlyA, "ONLY_B": got.OnlyB}); d != "" || got.Count != len(want) {
			t.Errorf("round %d (-want +got):\n%s", round, d)
		}
		if len(want) > 0 {
			var ids []string
			for id := range want {
				ids = append(ids, id)
			}
			first := slices.Min(ids)
			row := a[first]
			if row.Item == nil {
				row = b[first]
			}
			output := []string{[]string{"", "balance", "alert", "status"}[row.Kind], string(row.Item), string(row.Location)}
			if row.Kind != 3 {
				output = append(output, row.Day)
			}
			if d := cmp.Diff(output, got.First.Output); d != "" || got.First.What != want[first] {
				t.Errorf("round %d: the first is %s, want %s (-want +got):\n%s", round, got.First.What, want[first], d)
			}
		}
		w.exec("DELETE FROM amends.view_rows USING amends.rebuilds AS r WHERE r.namespace_id = view_rows.namespace_id; INSERT INTO amends.view_rows SELECT * FROM kept")
	}
}

// tamper changes n random rows of shop2's view.
func (w *world) tamper(random *rand.Rand, n int) {
	w.t.Helper()
	const which = ` WHERE (namespace_id, partition, key_id, day, kind) = (SELECT namespace_id, partition, key_id, day, kind FROM kept ORDER BY partition, key_id, day, kind
		OFFSET %d LIMIT 1)`
	var rows int
	if err := w.conn.QueryRow(w.t.Context(), "SELECT count(*) FROM kept").Scan(&rows); err != nil {
		w.t.Fatal(err)
	}
	for range n {
		at := fmt.Sprintf(which, random.IntN(rows))
		w.exec([]string{
			"DELETE FROM amends.view_rows" + at,
			"UPDATE amends.view_rows SET present = false, close = NULL, previous = NULL, threshold = NULL, status = NULL" + at,
			"UPDATE amends.view_rows SET close = close # 1" + at,
			"UPDATE amends.view_rows SET threshold = threshold # 1" + at,
			"UPDATE amends.view_rows SET previous = previous # 1" + at,
			"UPDATE amends.view_rows SET version = version + 1, cause_offset = cause_offset + 1, digest = digest # 1" + at, // not compared
			`UPDATE amends.view_rows SET status = '{"status":"BLOCKED","reasons":[{"code":"UNREPRESENTABLE","day":"2026-01-01"}],"more":0}'` + at + " AND status IS NOT NULL",
			"UPDATE amends.view_rows SET present = true, close = 7" + at + " AND kind = 1 AND NOT present",
			"UPDATE amends.view_rows SET present = true, close = 7, previous = 9, threshold = 8" + at + " AND kind = 2 AND NOT present",
		}[random.IntN(9)])
	}
}

// Namespaces at different cuts are compared as they are, and it is said; other configurations too.
func TestCompareSaysDifferentCutsAndConfigurations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"schema_version":1,"namespace":"shop","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":2,
		"stock_keys":[{"item":"widget","location":"berlin","partition":0,"opening_balance":0,"threshold":60}]}`)
	w.loaded(story[0])
	w.want(0, "", rebuild+" -execute")
	// What verify and audit say of a difference has the namespace's decimals, as what compare says has.
	w.exec(`UPDATE amends.view_rows SET close = 101 WHERE close = 100 AND namespace_id = (SELECT origin_id FROM amends.rebuilds)`)
	for _, line := range []string{"verify -manifest @pipeline.json -live", "audit -manifest @pipeline.json -once"} {
		if a := w.want(5, "(expected 1.00 by 0/0 T-1 r1, actual 1.01 version 1", line); !strings.Contains(a.First(), "(expected 1.00 by 0/0 T-1 r1, actual 1.01 version 1") {
			t.Errorf("%s: %s", line, a.Stdout)
		}
	}
	w.exec(`UPDATE amends.view_rows SET close = 100 WHERE close = 101 AND namespace_id = (SELECT origin_id FROM amends.rebuilds)`)
	w.loaded(story[1])
	a := w.want(5, "5 outputs of shop and shop2, at different cuts; the first: partition 0 balance widget berlin 2026-01-01: 0.70 (version 2, source 0/3) | 1.00 (version 1, source 0/0)", compare)
	if !strings.Contains(a.Stdout, "shop: 5 present, 1 withdrawn; cuts [4 0]\nshop2: 5 present, 0 withdrawn; cuts [3 0]\n") ||
		!strings.Contains(a.Stdout, "equal 1, other values 3, only in shop 1, only in shop2 1\n") {
		t.Error(a.Stdout)
	}
	// A view that lacks an output stands for what lies before the cause of the next one.
	w.exec(`UPDATE amends.view_progress SET next_sequence = next_sequence - 1, cause_offset = 1 WHERE namespace_id = (SELECT origin_id FROM amends.rebuilds) AND partition = 0`)
	if a := w.want(5, "", compare); !strings.Contains(a.Stdout, "shop: 5 present, 1 withdrawn; cuts [2 0]\n") {
		t.Error(a.Stdout)
	}
	w.Write("other.json", w.want(0, "", "source create -namespace other -topic other-source -config "+w.Write("other-config.json",
		`{"schema_version":1,"namespace":"other","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":2,
		"stock_keys":[{"item":"widget","location":"berlin","partition":0,"opening_balance":5,"threshold":60}]}`)).Stdout)
	w.want(0, "", "output create -manifest @other.json -topic other-output")
	if c := w.compare(5, "compare -manifest @pipeline.json -with @other.json"); len(c.Configuration) != 2 || !strings.Contains(c.Configuration[1], "opening_balance") || c.Differences.OnlyA != 5 {
		t.Errorf("%+v", c)
	}
	w.Write("three.json", w.want(0, "", "source create -namespace three -topic three-source -config "+w.Write("three-config.json",
		`{"schema_version":1,"namespace":"three","ledger_origin":"2026-01-01","partitions":3,"quantity_scale":0,"stock_keys":[]}`)).Stdout)
	w.want(0, "", "output create -manifest @three.json -topic three-output")
	w.want(2, "shop has 2, three has 3", "compare -manifest @pipeline.json -with @three.json")
	w.want(2, "needs -with", "compare -manifest @pipeline.json")
	w.want(2, "read manifest", "compare -manifest @pipeline.json -with @absent.json")
	w.want(13, "none", "compare -manifest @pipeline.json -with "+w.Write("none.json", strings.Replace(w.Read("pipeline.json"), `"shop"`, `"none"`, 1)))
}
