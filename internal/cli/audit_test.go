package cli_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/programtest"
)

// cycleLine is what of a line of amends audit -o json is looked at here.
type cycleLine struct {
	At         time.Time `json:"at"`
	Status     string    `json:"status"`
	Why        *string   `json:"why"`
	VerifiedAt *string   `json:"verified_at"`
	Age        *float64  `json:"age_seconds"`
	Drift      struct {
		First *struct {
			Output []string `json:"output"`
		} `json:"first"`
	} `json:"drift"`
	Full bool `json:"full"`
}

func cycles(t *testing.T, text string) (out []cycleLine) {
	t.Helper()
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var c cycleLine
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		out = append(out, c)
	}
	return out
}

// SC26, SC35: an audit says every status with its code; as a command and as a role it goes on over DRIFT and says so.
func TestSC26AuditStatusesAndCodes(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.Want(2, "not bound to an output topic", "amends audit -manifest @source.json -once")
	x.Want(2, "-every 0s", "amends audit -manifest @pipeline.json -every 0s")
	running, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan programtest.Answer, 1)
	go func() { ended <- x.Call(running, "amends run -manifest @pipeline.json -role source,relay,view,audit") }()
	for _, f := range []string{"before.jsonl", "correction.jsonl", "cancel-last-day.jsonl"} {
		x.Want(0, "published", "amends source load -manifest @pipeline.json -file "+programtest.Fixture(t, f))
	}
	x.Want(0, "", "amends verify -manifest @pipeline.json")
	a := x.Want(0, "", "amends audit -manifest @pipeline.json -once")
	if !strings.HasPrefix(a.Stdout, "PASS  5 source records, 11 messages; an independent recomputation agrees  20") || !regexp.MustCompile(`; verified [0-9]{1,2}\.[0-9] s ago\n$`).MatchString(a.Stdout) {
		t.Errorf("audit printed %q", a.Stdout)
	}
	conn, err := pgx.Connect(t.Context(), x.Env["AMENDS_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tamper := func(sql string) {
		t.Helper()
		if tag, err := conn.Exec(t.Context(), sql); err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%s: %v %v", sql, tag, err)
		}
	}
	tamper("UPDATE amends.view_rows SET close = 51 WHERE close = 50 AND kind = 1")
	x.Want(5, "audit DRIFT  1 difference; the first: ROW partition 0 balance widget berlin 2026-01-02", "amends audit -manifest @pipeline.json -once -full-every 0")
	// Running, it says so in every cycle, and a signal ends it with code 0.
	p := x.Start("amends audit -manifest @pipeline.json -every 100ms -o json")
	programtest.Await(t, "two cycles", func() bool { return len(cycles(t, p.Stdout.String())) >= 2 })
	p.Stop(stopsWithin)
	seen := cycles(t, p.Stdout.String())
	if len(seen) < 2 {
		t.Fatalf("%d cycles: %s %s", len(seen), p.Stdout, p.Stderr)
	}
	for _, c := range seen {
		if c.Status != "DRIFT" || !c.Full || c.Why == nil || c.VerifiedAt == nil || *c.Age <= 0 || c.At.IsZero() || strings.Join(c.Drift.First.Output, " ") != "balance widget berlin 2026-01-02" {
			t.Errorf("%+v", c)
		}
	}
	tamper("UPDATE amends.view_rows SET close = 50 WHERE close = 51 AND kind = 1")
	x.Write("conflict.jsonl", `{"schema":1,"txn_id":"T-1","revision":2,"state":"active","item":"widget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":71}`)
	x.Want(0, "published", "amends source load -manifest @pipeline.json -file @conflict.jsonl")
	x.Want(4, "BLOCKED", "amends verify -manifest @pipeline.json")
	x.Want(4, "audit BLOCKED  1 key blocked", "amends audit -manifest @pipeline.json -once")
	stop()
	if a := <-ended; a.Code != 0 || !strings.Contains(a.Stderr, "msg=audit status=") {
		t.Errorf("the roles ended with %d: %s", a.Code, a.Stderr)
	}
	tamper("UPDATE amends.view_progress SET stopped = true WHERE partition = 0")
	x.Want(3, "audit INCOMPLETE  PARTITION_STOPPED partition 0", "amends audit -manifest @pipeline.json -once")
	other := strings.Replace(x.Read("pipeline.json"), `"threshold": 60`, `"threshold": 61`, 1)
	x.Write("other.json", other)
	x.Want(6, "audit UNAVAILABLE  CONFIGURATION", "amends audit -manifest @other.json -once")
}

// S12: a single cycle gives up on a broker that is away as every command does, and says why; the hour that a full cycle may read
// is no time to wait.
func TestS12AuditOnceGivesUpOnABrokerThatIsAway(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.role(1, "connection refused", "amends audit -manifest @pipeline.json -once -brokers 127.0.0.1:1")
}
