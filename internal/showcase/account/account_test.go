package account_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"amends/internal/programtest"
	"amends/internal/report"
	"amends/internal/showcase/account"
)

// full is a report with something in every member.
func full() *account.Account {
	at := time.Date(2026, 11, 29, 23, 5, 17, 668e6, time.UTC)
	closing := int64(50)
	state := func(frontier int64, rows ...account.Row) account.State {
		return account.State{Story: rows, Partitions: []account.Partition{{Epoch: 1, Frontier: frontier, JournalDigest: "0123456789abcdef", ViewDigest: "fedcba9876543210"},
			{Partition: 1, Epoch: 7}}}
	}
	standing := account.Row{Day: "2026-01-03", Kind: "balance", Version: 1, Present: true, Close: &closing}
	return &account.Account{Schema: 1, Status: account.Pass, Scenario: "showcase", Namespace: "drill", SourceTopic: "drill-source", OutputTopic: "drill-output",
		Directory: "/tmp/amends-drill", Manifest: "/tmp/amends-drill/pipeline.json", Started: at, Seconds: 15.25,
		Services: account.Services{PostgreSQL: "18.4", Database: "db:5432/ledger", Brokers: []string{"k1:9092", "k2:9092"}, Embedded: true},
		Steps: []account.Step{
			{Name: "history", Title: "Loaded", Seconds: 1, Findings: []account.Finding{{Text: "all decided", OK: true}}, Events: []account.Event{},
				Moments: []account.Moment{{When: "loaded", At: at, State: state(3, standing)}}},
			{Name: "worker-killed", Title: "Killed", Seconds: 0.3, Findings: []account.Finding{{Text: "nothing changed", OK: true}},
				Events: []account.Event{{At: at, Text: "SIGKILL to process 5999"}},
				Moments: []account.Moment{{When: "dead", At: at, State: state(4, account.Row{Day: "2026-01-03", Kind: "balance", Version: 2},
					account.Row{Kind: "status", Version: 1, Present: true})}}}},
		Kills:     []account.Kill{{At: at, Process: "worker 1", PID: 5999, Signal: "SIGKILL", Phase: "before COMMIT", Backend: 6022, BackendState: "idle in transaction", BackendGone: 0.008}},
		Handover:  &account.Handover{At: at, FromPID: 6003, ToPID: 7472, Signal: "SIGTERM", Seconds: 0.498},
		Processes: []account.Process{{Name: "worker 1", PID: 5999, Command: "amends run -role source", Log: "/tmp/amends-drill/worker-1.log", Started: at, Ended: &at, End: "SIGKILL"}},
		Verify:    &report.JSON{Status: "PASS", SourceRecords: 4222, Outputs: 10, Messages: 20},
		Commands:  []string{"amends verify -manifest /tmp/amends-drill/pipeline.json"}}
}

// The first line of the text is the answer; kills, findings and times follow.
func TestText(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := full().Write(&b, account.Text); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(b.String(), "\n")
	if want := "showcase PASS  1 process killed, the relay handed over in 0.5 s, verify PASS over 4222 source records"; first != want {
		t.Errorf("%q, want %q", first, want)
	}
	for _, part := range []string{"PostgreSQL 18.4 at db:5432/ledger, brokers k1:9092,k2:9092 (embedded)", " 2 ✓ Killed   0.3 s", "23:05:17.668  SIGKILL to process 5999",
		"✓ nothing changed", `server process 6022: "idle in transaction", gone after 0.008 s`, "amends verify -manifest"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("no %q in\n%s", part, b.String())
		}
	}
	a := full()
	a.Status, a.Failed = account.Fail, &account.Failure{Step: "drain", Cause: "step drain: one is missing"}
	a.Steps[1].Findings[0].OK = false
	b.Reset()
	if err := a.Write(&b, account.Text); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.HasPrefix(text, "showcase FAIL  step drain: one is missing\n") || !strings.Contains(text, "✗ Killed") || !strings.Contains(text, "✗ nothing changed") {
		t.Error(text)
	}
}

// The page needs no other file, runs nothing, and shows hostile text as text.
func TestPageIsSelfContained(t *testing.T) {
	t.Parallel()
	a := full()
	const hostile = `<script>alert(1)</script><img src=x onerror=alert(1)>"'`
	a.Namespace, a.Commands[0], a.Steps[0].Title, a.Steps[0].Findings[0].Text, a.Processes[0].End = hostile, hostile, hostile, hostile, hostile
	var b bytes.Buffer
	if err := a.Write(&b, account.HTML); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, no := range []string{"<script", "<img", "src=", "href=", "http://", "https://", "url(", "@import", "<link", "<iframe"} {
		if strings.Contains(strings.ReplaceAll(page, "src=x", ""), no) {
			t.Errorf("the page holds %q", no)
		}
	}
	if got := strings.Count(page, "&lt;script&gt;"); got < 6 {
		t.Errorf("hostile text is shown %d times", got)
	}
	for _, part := range []string{`default-src 'none'`, "idle in transaction", "0.498 s", "23:05:17.668", "4222 source records"} {
		if !strings.Contains(page, part) {
			t.Errorf("no %q", part)
		}
	}
	if opened, closed := len(regexp.MustCompile(`<(section|table|details|ul|dl)[ >]`).FindAllString(page, -1)), len(regexp.MustCompile(`</(section|table|details|ul|dl)>`).FindAllString(page, -1)); opened != closed {
		t.Errorf("%d elements opened, %d closed", opened, closed)
	}
}

// A step's table begins with the last moment before it, and marks what is not what it was.
func TestTableMarksChanges(t *testing.T) {
	t.Parallel()
	a := full()
	lines := account.Table(a.Before(1))
	found := map[string]string{}
	for _, l := range lines {
		var cells []string
		for _, c := range l.Cells {
			cells = append(cells, fmt.Sprintf("%s/%t", c.Text, c.Changed))
		}
		name := l.Name
		if found[name] == "" {
			found[name] = strings.Join(cells, " ")
		}
	}
	for name, want := range map[string]string{
		"source frontier":    "3/false 4/true",
		"worker epoch":       "1/false 1/false",
		"journal digest":     "0123456789ab/false 0123456789ab/false",
		"2026-01-03 balance": "50, v1/false withdrawn, v2/true",
		"status":             "none/false READY, v1/true",
	} {
		if found[name] != want {
			t.Errorf("%s: %q, want %q", name, found[name], want)
		}
	}
	if lines[0].Group != "view rows of the story" || account.Table(nil) != nil || len(a.Before(0)) != 1 {
		t.Errorf("%+v", lines[0])
	}
}

func TestFormOf(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]account.Form{"a.html": account.HTML, "a/b.HTM": account.HTML, "x.json": account.JSON, "x.txt": account.Text, "x": account.Text} {
		if got := account.FormOf(path); got != want || !got.Valid() {
			t.Errorf("%s: %s", path, got)
		}
	}
	if account.Form("yaml").Valid() {
		t.Error("yaml is a form")
	}
}

// The JSON is what its schema says, with something in every member and with as little as a run can have.
func TestJSONFollowsItsSchema(t *testing.T) {
	t.Parallel()
	bare := &account.Account{Schema: 1, Status: account.Fail, Scenario: "crash", Failed: &account.Failure{Step: "start", Cause: "away"}, Services: account.Services{Brokers: []string{}},
		Steps: []account.Step{}, Kills: []account.Kill{}, Processes: []account.Process{}, Commands: []string{}}
	for _, a := range []*account.Account{full(), bare} {
		var b bytes.Buffer
		if err := a.Write(&b, account.JSON); err != nil {
			t.Fatal(err)
		}
		if n := programtest.Conforms(t, "showcase", b.String()); n != 1 {
			t.Errorf("%d values", n)
		}
	}
}
