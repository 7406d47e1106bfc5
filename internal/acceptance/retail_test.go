package acceptance

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"amends/internal/absent"
	"amends/internal/embedded"
	"amends/internal/pgtest"
	"amends/internal/programtest"
)

// closes prints the closes of one key, computed from the file alone: what each surviving row takes or gives on its day, added
// up from the opening balance. A cancelled row takes its day's row with it.
const closes = `
BEGIN { FS = "," }
{ gsub(/\r/, ""); while (match($0, /"[^"]*"/)) $0 = substr($0, 1, RSTART - 1) "quoted" substr($0, RSTART + RLENGTH) }
NR == 1 || $2 != item || $8 != location { next }
{ day = substr($5, 1, 10); q = $4 < 0 ? -$4 : $4 }
$1 ~ /^C/ {
	for (i = n; i > 0; i--) if ($7 != "" && buyer[i] == $7 && left[i] >= q) break
	if (i > 0) { sum[on[i]] += q; left[i] -= q; if (left[i] == 0) rows[on[i]]--; next }
	sum[day] += q; rows[day]++; next
}
{ opening += q; sum[day] -= q; rows[day]++ }
$4 > 0 { n++; buyer[n] = $7; left[n] = q; on[n] = day }
END {
	balance = opening
	for (y = 2010; y <= 2011; y++) for (m = 1; m <= 12; m++) for (d = 1; d <= 31; d++) {
		day = sprintf("%04d-%02d-%02d", y, m, d)
		balance += sum[day]
		if (rows[day] > 0) print day, balance
	}
}`

// stackParent is a folder for embedded stacks: PostgreSQL's socket path must stay short, and its user may be another.
func stackParent(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "amends-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The real file through the whole path on the embedded stack: PASS, every row decided, and the closes of five keys equal sums
// of the file by awk.
func TestRetailFile(t *testing.T) {
	t.Parallel()
	file := absent.Data(t, "online-retail-top60/online-retail-top60-cancelled-stockcodes.csv")
	pgtest.Installed(t)
	if _, err := exec.LookPath("awk"); err != nil {
		absent.Skip(t, "awk", "awk", "install mawk or gawk")
	}
	s := newShell(t)
	dir := filepath.Join(stackParent(t), "stack")
	a := s.Must(0, "", "amends demo retail -file "+file+" --once -dir "+dir)
	if !strings.Contains(a.Stdout, "verify PASS") {
		t.Errorf("the demo ended with\n%s", a.Stdout)
	}
	stack := s.Start("amends dev -dir " + dir) // its data again, to read it
	e := running(t, dir)
	sql, err := pgx.Connect(t.Context(), e.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer sql.Close(context.Background())
	var decided, rejected int
	if err := sql.QueryRow(t.Context(), "SELECT count(*), count(rejection) FROM amends.journal").Scan(&decided, &rejected); err != nil {
		t.Fatal(err)
	}
	if decided != 45_085 || rejected != 0 {
		t.Errorf("%d records decided, %d of them rejected", decided, rejected)
	}
	for _, k := range [][2]string{{"85123A", "United Kingdom"}, {"22423", "France"}, {"22423", "Germany"}, {"22726", "EIRE"}, {"22960", "United Kingdom"}} {
		out, err := exec.Command("awk", "-v", "item="+k[0], "-v", "location="+k[1], closes, file).CombinedOutput()
		if err != nil {
			t.Fatalf("awk: %v\n%s", err, out)
		}
		rows, err := sql.Query(t.Context(), `SELECT to_char(day, 'YYYY-MM-DD') || ' ' || close FROM amends.view_rows JOIN amends.view_keys USING (namespace_id, partition, key_id)
			WHERE item = $1 AND location = $2 AND kind = 1 AND present ORDER BY day`, []byte(k[0]), []byte(k[1]))
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSpace(string(out)), "\n")
		if d := cmp.Diff(want, got); d != "" || len(want) < 5 {
			t.Errorf("%v, %d days (-awk +view):\n%s", k, len(want), d)
		}
	}
	stack.Stop(programtest.Deadline)
}

// running waits for a stack's endpoints.
func running(t *testing.T, dir string) (e embedded.Endpoints) {
	t.Helper()
	programtest.Await(t, "endpoints of the stack", func() bool {
		var ok bool
		var err error
		e, ok, err = embedded.Running(dir)
		return ok && err == nil
	})
	return e
}

// The story on a stack of its own ends with PASS and prints what it is documented to.
func TestSC01SC02SC03DemoOnce(t *testing.T) {
	t.Parallel()
	pgtest.Installed(t)
	s := newShell(t)
	var told struct {
		SourceFrontiers []int64 `json:"source_frontiers"`
		NextSequences   []int64 `json:"next_sequences"`
		Balances        []struct {
			Item, Location, Day string
			Close, Version      int64
		}
		Alerts []struct {
			Day                                 string
			Previous, Close, Threshold, Version int64
		}
		Verify    verified
		Endpoints map[string]any
		Timings   map[string]any
		Schema    int
	}
	if err := json.Unmarshal([]byte(s.run("amends demo --once -o json -dir "+stackParent(t)+"/stack")), &told); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([][]int64{{5, 0}, {11, 0}}, [][]int64{told.SourceFrontiers, told.NextSequences}); d != "" {
		t.Error(d)
	}
	b, a := told.Balances, told.Alerts
	if told.Schema != 1 || told.Verify.Status != "PASS" || len(told.Endpoints) == 0 || len(told.Timings) == 0 ||
		len(b) != 2 || b[0].Day != "2026-01-01" || b[0].Close != 70 || b[0].Version != 2 || b[1].Day != "2026-01-02" || b[1].Close != 50 || b[1].Version != 2 ||
		len(a) != 1 || a[0].Day != "2026-01-02" || a[0].Previous != 70 || a[0].Close != 50 || a[0].Threshold != 60 || a[0].Version != 1 {
		t.Errorf("%+v", told)
	}
}
