package operate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"amends/internal/pgtest"
)

// The worked example's work as the commits counted it: 5 records, 11 output versions, 2 of them withdrawals; in every form, without
// the broker too; and unknown where a database comes from a version that did not measure.
func TestSC42InspectWork(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	stop := x.run("source,relay,view")
	x.load(worked...)
	x.eventually(0, "OK  lag 0; outbox 0; 0 blocked keys", "status")
	stop()
	v := x.want(0, "", "inspect -format json").object(t)
	if v["scope"] != "live snapshot, not a verification" || v["schema"] != 1.0 {
		t.Errorf("%v %v", v["scope"], v["schema"])
	}
	one := v["partitions"].([]any)[0].(map[string]any)
	m := one["measurements"].(map[string]any)
	total := m["total"].(map[string]any)
	for name, want := range map[string]float64{"records": 5, "accepted": 5, "rejected": 0, "outputs_changed": 11, "outputs_withdrawn": 2} {
		if total[name] != want {
			t.Errorf("%s is %v, want %v", name, total[name], want)
		}
	}
	if n := float64(len(m["recent"].([]any))); m["complete"] != true || n != m["commits"] || n < 1 || total["pre_commit_ns"].(float64) <= 0 || m["last"] == nil {
		t.Errorf("%v", m)
	}
	if one["source_frontier"] != 5.0 || one["source_end"] != 5.0 || one["next_sequence"] != 11.0 || one["relay"].(map[string]any)["next_sequence"] != 11.0 ||
		one["view"].(map[string]any)["next_sequence"] != 11.0 || one["lag"].(map[string]any)["seconds"] != 0.0 {
		t.Errorf("%v", one)
	}
	a := x.want(0, "", "inspect")
	a.has(t, "lag 0; outbox 0; 0 blocked keys; quarantine 0; never verified\ndemo as of ", "live snapshot, not a verification", "the latest commits of partition 0, oldest first")
	page := x.want(0, "", "inspect -format html")
	page.has(t, "<!doctype html>", "This is a live snapshot, not a verification.", "<td>up to date</td>")
	// As of a version without measurements: the columns that it did not have hold what the migrations gave them.
	x.exec(`UPDATE amends.partitions SET last_records = NULL, last_accepted = NULL, last_rejected = NULL, last_rewind_days = NULL, last_refolded_days = NULL,
		last_changed = NULL, last_withdrawn = NULL, last_lock_ns = NULL, last_pre_commit_ns = NULL, commits = 0, total_records = 0, total_accepted = 0, total_rejected = 0,
		total_rewind_days = 0, total_refolded_days = 0, total_changed = 0, total_withdrawn = 0, total_lock_ns = 0, total_pre_commit_ns = 0, samples = '{}' WHERE partition = 0`)
	x.Env["AMENDS_BROKERS"] = "127.0.0.1:1"
	v = x.want(0, "", "inspect -o json").object(t)
	m = v["partitions"].([]any)[0].(map[string]any)["measurements"].(map[string]any)
	if m["last"] != nil || m["total"] != nil || v["quarantined"] != nil || v["lag"].(map[string]any)["records"] != nil {
		t.Errorf("%v", m)
	}
	a = x.want(0, "", "inspect")
	if !strings.HasPrefix(a.First(), "lag unknown; outbox 0; 0 blocked keys; quarantine unknown") {
		t.Error(a.First())
	}
	a.has(t, "partition 0: nothing has been measured: what was done until now is unknown")
	for line, cause := range map[string]string{"-format pdf": "text, json or html", "extra": "takes no argument"} {
		x.want(2, cause, "inspect "+line)
	}
}

// An empty database is refused with 13 and stays empty, by every command (design section 8).
func TestReadCommandsCreateNothing(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	lines := []string{"status", "inspect", "inspect -format html", "diagnostics", "diagnostics -export raw"}
	x.Env["AMENDS_MANIFEST"] = x.Path("source.json")
	for _, line := range lines {
		x.want(0, "", line) // an unbound manifest is enough to read
	}
	x.Env["AMENDS_DATABASE_URL"] = pgtest.New(t)
	for _, line := range lines {
		if a := x.want(13, "", line); a.Stdout != "" {
			t.Errorf("%s printed %s", line, a.Stdout)
		}
	}
	if n := x.count("SELECT count(*) FROM pg_namespace WHERE nspname = 'amends'"); n != 0 {
		t.Error("the schema was created")
	}
}

func (x *space) count(sql string) (n int) {
	x.t.Helper()
	conn, err := pgx.Connect(x.t.Context(), x.Env["AMENDS_DATABASE_URL"])
	if err != nil {
		x.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(x.t.Context(), sql).Scan(&n); err != nil {
		x.t.Fatal(err)
	}
	return n
}
