package show_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"amends/internal/broker"
	"amends/internal/kafkatest"
	"amends/internal/manifest"
	"amends/internal/pgtest"
	"amends/internal/programtest"
	"amends/internal/showcase/account"
	"amends/internal/wire"
)

func itoa(n int) string { return strconv.Itoa(n) }

// named is a site on a database of its own and the given brokers.
func named(t *testing.T, brokers []string) (*site, *pgx.Conn) {
	t.Helper()
	url := pgtest.New(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	s := newSite(t)
	s.Env["AMENDS_DATABASE_URL"], s.Env["AMENDS_BROKERS"] = url, strings.Join(brokers, ",")
	return s, conn
}

// one reads one value.
func one[T any](t *testing.T, c *pgx.Conn, sql string, args ...any) (v T) {
	t.Helper()
	if err := c.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// A whole showcase on each kind of broker: what its report says is what SQL and the topics say without it.
func TestSC20ShowcasePasses(t *testing.T) {
	t.Parallel()
	for name, brokers := range map[string]func(testing.TB) []string{"embedded broker": kafkatest.Embedded, "Apache Kafka": kafkatest.Brokers} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addresses := brokers(t)
			s, db := named(t, addresses)
			namespace := fmt.Sprintf("drill-%d", time.Now().UnixNano())
			out := s.Must(0, "", "amends showcase -o json -records 500 -report page.html -work w -namespace "+namespace).Stdout
			a := s.account(out)
			compareWithServices(t, a, db, addresses)
			ended(t, a)
			page, err := os.ReadFile(s.Path("page.html"))
			if err != nil || !strings.Contains(string(page), "idle in transaction") {
				t.Errorf("page: %v", err)
			}
			refuses(t, s, db, namespace)
		})
	}
}

// compareWithServices checks a passed report by SQL of its own and by reading the topics.
func compareWithServices(t *testing.T, a *account.Account, db *pgx.Conn, brokers []string) {
	t.Helper()
	if a.Status != account.Pass || a.Failed != nil || a.Verify == nil || a.Verify.Status != "PASS" || !a.Verify.Deep || a.Handover == nil || a.Services.Embedded {
		t.Fatalf("%s: %+v", a.Headline(), a.Failed)
	}
	var kills []string
	for _, k := range a.Kills {
		kills = append(kills, k.Process+", "+k.Phase+", "+k.BackendState)
	}
	want := []string{"worker 1, after its writes, before COMMIT, idle in transaction", "view 1, before its upsert, active", "view 2, after its commit, before the answer, idle"}
	if diff := cmp.Diff(want, kills); diff != "" {
		t.Error(diff)
	}
	ends := map[string]string{}
	for _, p := range a.Processes {
		ends[p.Name] = p.End
	}
	if diff := cmp.Diff(map[string]string{"worker 1": "SIGKILL", "worker 2": "exit code 0", "relay 1": "exit code 0", "relay 2": "exit code 0",
		"view 1": "SIGKILL", "view 2": "SIGKILL", "view 3": "exit code 0"}, ends); diff != "" {
		t.Error(diff)
	}
	// The worked example by S8's table: closes of 70 and 50, an alert on the second day, and nothing on the third.
	rows, err := db.Query(t.Context(), `SELECT day::text, close FROM amends.balances WHERE namespace = $1 AND item = 'widget' AND present ORDER BY day`, a.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	type balance struct {
		Day   string
		Close int64
	}
	balances, err := pgx.CollectRows(rows, pgx.RowToStructByPos[balance])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]balance{{"2026-01-01", 70}, {"2026-01-02", 50}}, balances); diff != "" {
		t.Error(diff)
	}
	id := one[int32](t, db, "SELECT namespace_id FROM amends.namespaces WHERE namespace = $1", a.Namespace)
	last := a.Steps[len(a.Steps)-3].Moments[0].State // drained
	for _, p := range last.Partitions {
		if got := one[int64](t, db, "SELECT frontier FROM amends.partitions WHERE namespace_id = $1 AND partition = $2", id, p.Partition); got != p.Frontier {
			t.Errorf("partition %d: frontier %d, reported %d", p.Partition, got, p.Frontier)
		}
		if got := one[int64](t, db, "SELECT count(*) FROM amends.journal WHERE namespace_id = $1 AND partition = $2", id, p.Partition); got != p.JournalRows {
			t.Errorf("partition %d: %d journal rows, reported %d", p.Partition, got, p.JournalRows)
		}
		if got := one[int64](t, db, "SELECT count(*) FROM amends.view_rows WHERE namespace_id = $1 AND partition = $2", id, p.Partition); got != p.ViewRows {
			t.Errorf("partition %d: %d view rows, reported %d", p.Partition, got, p.ViewRows)
		}
	}
	compareWithTopic(t, a, brokers)
}

// compareWithTopic reads the output topic: each sequence once and in order, but for one repetition: version 1 of what was
// withdrawn, behind its withdrawal.
func compareWithTopic(t *testing.T, a *account.Account, brokers []string) {
	t.Helper()
	raw, err := os.ReadFile(a.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	in, err := broker.NewReader(broker.Options{Brokers: brokers}, m.Output.Topic, m.Output.Incarnation)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := in.Seek(t.Context(), 0, 0); err != nil {
		t.Fatal(err)
	}
	next, repeated, withdrawal := int64(0), 0, int64(-1)
	last := a.Steps[len(a.Steps)-3].Moments[0].State.Partitions[0]
	for next < last.Sequence {
		fetched, err := in.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fetched {
			for _, r := range f.Records {
				e, err := wire.DecodeEnvelope(r.Value)
				if err != nil {
					t.Fatal(err)
				}
				id := fmt.Sprintf("%s %v %v", e.Output.Key.Item, e.Output.Day, e.Output.Kind)
				switch {
				case int64(e.Sequence) == next:
					if next++; id == "widget 2026-01-03 balance" && !e.Present {
						withdrawal = int64(r.Offset)
					}
				case id == "widget 2026-01-03 balance" && e.Version == 1 && withdrawal >= 0 && int64(r.Offset) > withdrawal:
					repeated++
				default:
					t.Fatalf("offset %d holds sequence %d, want %d", r.Offset, e.Sequence, next)
				}
			}
		}
	}
	if repeated != 1 {
		t.Errorf("%d repetitions, want 1", repeated)
	}
}

// refuses runs again with each name taken: nothing is touched and nothing is made.
func refuses(t *testing.T, s *site, db *pgx.Conn, namespace string) {
	t.Helper()
	count := func() int64 {
		return one[int64](t, db, "SELECT count(*) + sum(frontier)::bigint FROM amends.partitions")
	}
	before := count()
	said := s.Must(2, "", "amends showcase -report other.html -work other -namespace "+namespace).Stderr
	if !strings.Contains(said, `namespace "`+namespace+`" exists`) || !strings.Contains(said, "choose another -namespace") {
		t.Error(said)
	}
	said = s.Must(2, "", "amends showcase -work w -namespace "+namespace+"-2").Stderr
	if !strings.Contains(said, "directory") {
		t.Error(said)
	}
	s.Must(0, "", "amends source create -namespace "+namespace+"-3 -topic "+namespace+"-3-output")
	said = s.Must(2, "", "amends showcase -work other -namespace "+namespace+"-3").Stderr
	if !strings.Contains(said, `topic "`+namespace+`-3-output" exists`) {
		t.Error(said)
	}
	for _, name := range []string{"other", "other.html"} {
		if _, err := os.Stat(s.Path(name)); err == nil {
			t.Errorf("a refused run made %s", name)
		}
	}
	if after := count(); after != before {
		t.Errorf("the database changed: %d → %d", before, after)
	}
}

// Ctrl-C ends the processes of a run, says in which step it was, and still writes the report.
func TestInterruptEndsEveryProcess(t *testing.T) {
	t.Parallel()
	s, _ := named(t, kafkatest.Embedded(t))
	cmd, stdout, stderr := s.Command("amends showcase -records 10 -o json -work w")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	programtest.Await(t, "the worker is killed", func() bool { return strings.Contains(stderr.String(), "The worker is killed") })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(stderr.String(), "step worker-recovered") {
		t.Errorf("code %d\n%s", code, stderr)
	}
	a := s.account(stdout.String())
	if a.Status != account.Fail || a.Failed == nil || a.Failed.Step != "worker-recovered" || len(a.Kills) != 1 || len(a.Processes) < 3 {
		t.Errorf("%+v", a.Failed)
	}
	ended(t, a)
}

// A run that is killed itself leaves no process behind.
func TestKilledShowcaseLeavesNoProcess(t *testing.T) {
	t.Parallel()
	s, db := named(t, kafkatest.Embedded(t))
	cmd, _, stderr := s.Command("amends showcase -records 10 -work w")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	programtest.Await(t, "the history is loaded", func() bool { return strings.Contains(stderr.String(), "Records are loaded") })
	children := childrenOf(t, cmd.Process.Pid)
	if len(children) < 3 {
		t.Errorf("%d children", len(children))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	programtest.Await(t, "no child is left", func() bool {
		for _, pid := range children {
			if alive(pid) {
				return false
			}
		}
		return true
	})
	programtest.Await(t, "no connection is left", func() bool {
		return one[int64](t, db, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()") == 0
	})
}

// childrenOf finds the live processes whose parent is the given one.
func childrenOf(t *testing.T, parent int) (out []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == itoa(parent) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, pid)
		}
	}
	return out
}

// A step that does not show what it should ends the run with code 1 and is named: here somebody changes a view row under it.
func TestI20TamperedRunFails(t *testing.T) {
	t.Parallel()
	s, db := named(t, kafkatest.Embedded(t))
	cmd, stdout, stderr := s.Command("amends showcase -records 0 -work w -o json")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	programtest.Await(t, "the history is loaded", func() bool { return strings.Contains(stderr.String(), "Records are loaded") })
	tag, err := db.Exec(t.Context(), `UPDATE amends.view_rows SET close = close + 1 WHERE kind = 1 AND partition = 0`)
	if err != nil || tag.RowsAffected() == 0 {
		t.Fatalf("%v %v", tag, err)
	}
	_ = cmd.Wait()
	a := s.account(stdout.String())
	if code := cmd.ProcessState.ExitCode(); code != 1 || a.Status != account.Fail || a.Failed == nil {
		t.Fatalf("code %d, %+v", code, a)
	}
	last := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	if words := last[len(last)-1]; !strings.Contains(words, "step "+a.Failed.Step+": ") {
		t.Errorf("the last line is %q", words)
	}
	ended(t, a)
}

// Flags that cannot be are refused before anything is made.
func TestRefusedFlags(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for line, cause := range map[string]string{
		"amends showcase -o yaml":               "text, json or html",
		"amends showcase -records -1":           "-records of 0 to 100000",
		"amends showcase -records 100001":       "-records of 0 to 100000",
		"amends showcase -replication-factor 0": "-replication-factor of 1 or more",
		"amends showcase -brokers 127.0.0.1:9":  "AMENDS_DATABASE_URL is not set",
		"amends showcase now":                   "takes no argument",
		"amends demo crush":                     "unknown scenario",
		"amends demo crash -file online.csv":    "-file belongs to",
	} {
		if a := s.Must(2, "", line); !strings.Contains(a.Stderr, cause) {
			t.Errorf("%s: %s", line, a.Stderr)
		}
	}
	s.Env["AMENDS_DATABASE_URL"] = "postgres://nobody@127.0.0.1:9/none"
	for line, cause := range map[string]string{
		"amends showcase -namespace Big":                   "-namespace \"Big\"",
		"amends showcase -report no-such-directory/a.html": "-report",
	} {
		if a := s.Must(2, "", line); !strings.Contains(a.Stderr, cause) {
			t.Errorf("%s: %s", line, a.Stderr)
		}
	}
}

// The demo's crash on an embedded stack of its own, twice, and every command that it prints.
func TestDemoCrash(t *testing.T) {
	t.Parallel()
	pgtest.Installed(t)
	dir, err := os.MkdirTemp("", "amends-show-") // short: PostgreSQL's socket lies below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // PostgreSQL may run under another uid
		t.Fatal(err)
	}
	s := newSite(t)
	s.Env["AMENDS_DIR"] = filepath.Join(dir, "stack")
	// What is set for other brokers changes nothing of the stack's, nor of the processes on it.
	s.Env["AMENDS_KAFKA_TLS"], s.Env["AMENDS_KAFKA_SASL"], s.Env["AMENDS_KAFKA_USER"] = "true", "PLAIN", "amends"
	out := s.Must(0, "", "amends demo crash").Stdout
	for _, part := range []string{"COMMIT of server process", "idle in transaction", "frontier 3, sequence 5", "source frontier 3 → 4", "2026-01-03 20 (v2)", "✓ crash PASS", "verify -deep -manifest"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	dev, endpoints, said := s.Command("amends dev -o json")
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = dev.Process.Signal(syscall.SIGTERM)
		_ = dev.Wait()
	})
	programtest.Await(t, "the stack runs", func() bool { return json.Valid([]byte(endpoints.String())) })
	out = s.Must(0, "", "amendsctl demo -o json crash").Stdout
	a := s.account(out)
	if a.Status != account.Pass || !a.Services.Embedded || len(a.Kills) != 1 || a.Handover != nil {
		t.Errorf("%+v\n%s", a, said)
	}
	ended(t, a)
	script := strings.Join(a.Commands, " && ")
	if !strings.Contains(script, "view-show") || !strings.Contains(script, "explain widget") || !strings.HasPrefix(script, `eval "$(`) {
		t.Error(script)
	}
	shell, _, complaints := s.Command("amendsctl")
	shell.Path, shell.Args = "/bin/sh", []string{"sh", "-c", strings.ReplaceAll(script, "# names the running stack's services", "")}
	if err := shell.Run(); err != nil {
		t.Errorf("%s: %v\n%s", script, err, complaints)
	}
}
