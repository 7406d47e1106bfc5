package importing_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"amends/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m) }

// An import that is killed in the middle of publishing, again and again, ends with every record published, in the order of
// the file, and what was published twice is the same bytes.
func TestKilledImportGoesOn(t *testing.T) {
	t.Parallel()
	d := newPipeline(t)
	const rows = 30_000
	var text strings.Builder
	text.WriteString("sku,site,id,day,n\n")
	for i := range rows {
		fmt.Fprintf(&text, "bolt,a,T-%d,2026-01-02,1\n", i)
	}
	d.Write("stock.csv", text.String())
	kills := 0
	for delay := time.Duration(0); delay < 150*time.Millisecond; delay += 30 * time.Millisecond {
		if d.killed(delay) {
			kills++
		}
	}
	if kills == 0 { // the first comes at once
		t.Error("no kill met the import")
	}
	if a := d.want(0, "", importFile+" -execute"); !strings.HasPrefix(a.First(), "PUBLISHED: ") && !strings.HasPrefix(a.First(), "COMPLETE: ") {
		t.Errorf("%s", a.Stdout)
	}
	next, seen := 0, map[string]bool{}
	for _, value := range d.published() {
		var v struct {
			TxnID string `json:"txn_id"`
		}
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		if seen[value] {
			continue
		}
		if want := fmt.Sprintf("T-%d", next); v.TxnID != want {
			t.Fatalf("%s where %s is the next new one", v.TxnID, want)
		}
		seen[value] = true
		next++
	}
	if next != rows {
		t.Errorf("%d of %d records are published", next, rows)
	}
}

// killed runs the import as a process and kills it some time after it began to publish. It reports whether the kill came
// before the end.
func (d *desk) killed(delay time.Duration) bool {
	d.t.Helper()
	before, _ := os.Stat(d.Path("stock.csv.progress"))
	p := d.Start("amends " + importFile + " -execute")
	for deadline := time.Now().Add(programtest.Deadline); ; time.Sleep(time.Millisecond) {
		now, err := os.Stat(d.Path("stock.csv.progress"))
		if err == nil && (before == nil || !os.SameFile(before, now)) { // it is replaced when publication begins
			break
		}
		if p.Ended() { // another run had published everything
			return false
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("publication did not begin\n%s", p.Stderr)
		}
	}
	time.Sleep(delay)
	_ = p.Cmd.Process.Kill() // it may have ended
	a := p.Wait()
	if a.Code > 0 {
		d.t.Fatalf("the import failed: %d\n%s", a.Code, a.Stderr)
	}
	programtest.Await(d.t, "the server sees that the guard's session is gone", func() bool { return d.tryGuard(func() {}) == nil })
	return a.Code != 0
}
