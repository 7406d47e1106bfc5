package importing_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"amends/internal/cli"
)

// TestMain lets the test binary stand in for the program.
func TestMain(m *testing.M) {
	if os.Getenv("AMENDS_TEST_MAIN") != "" {
		os.Exit(cli.Main(cli.Nested))
	}
	os.Exit(m.Run())
}

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
	d.write("stock.csv", text.String())
	kills := 0
	for delay := time.Duration(0); delay < 150*time.Millisecond; delay += 30 * time.Millisecond {
		if d.killed(delay) {
			kills++
		}
	}
	if kills == 0 { // the first comes at once
		t.Error("no kill met the import")
	}
	if a := d.want(0, "", importFile+" -execute"); !strings.HasPrefix(a.first(), "PUBLISHED: ") && !strings.HasPrefix(a.first(), "COMPLETE: ") {
		t.Errorf("%s", a.stdout)
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
	before, _ := os.Stat(d.path("stock.csv.progress"))
	cmd := exec.Command(os.Args[0], "import", "-manifest", d.path("pipeline.json"), "-mapping", d.path("map.yaml"), "-file", d.path("stock.csv"), "-execute")
	cmd.Env = append(os.Environ(), "AMENDS_TEST_MAIN=amends")
	for k, v := range d.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		now, err := os.Stat(d.path("stock.csv.progress"))
		if err == nil && (before == nil || !os.SameFile(before, now)) { // it is replaced when publication begins
			break
		}
		select {
		case <-ended: // another run had published everything
			return false
		default:
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			d.t.Fatalf("publication did not begin in a minute: %v\n%s", <-ended, said.String())
		}
	}
	time.Sleep(delay)
	_ = cmd.Process.Kill() // it may have ended
	err := <-ended
	if err != nil && cmd.ProcessState.ExitCode() > 0 {
		d.t.Fatalf("the import failed: %v\n%s", err, said.String())
	}
	return err != nil
}
