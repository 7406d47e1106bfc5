package operator

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"amends/internal/pgtest"
	"amends/internal/programtest"
)

// row is one row of the operator's table: what is asked, with the answer that the worked example has by hand.
type row struct {
	question string
	line     string // without the program
	code     int
	first    string // of the text, a pattern of the whole line
	schema   string // of the JSON
	json     string // what makes the answer JSON, "-o json" unless told
	once     bool   // -watch has no sense: it writes, or follows by itself
}

// healthy is asked after the worked example: five records, eleven messages.
var healthy = []row{
	{question: "is it healthy", line: "status", first: `OK  lag 0; outbox 0; 0 blocked keys; quarantine 0; verified PASS \S+ s ago`, schema: "status"},
	{question: "will it work", line: "doctor", first: `OK  nothing fails; .*`, schema: "doctor"},
	{question: "what is the balance", line: "balance widget berlin", first: `widget berlin: 50 \(as of 2026-01-02; alert 70 -> 50 below 60\)`, schema: "balance"},
	{question: "what was the balance", line: "balance widget berlin 2026-01-03 -known-at 0/3", first: `widget berlin as of 2026-01-03: 50 \(alert 80 -> 50 below 60; as known below 0/3\)`, schema: "balance"},
	{question: "what is the balance as of a day", line: "balance widget berlin -as-of 2026-01-01", first: `widget berlin as of 2026-01-01: 70.*`, schema: "balance"},
	{question: "why", line: "explain widget berlin 2026-01-02", first: `widget berlin as of 2026-01-02: 50 \(alert 70 -> 50 below 60\)`, schema: "explain"},
	{question: "what did we say then", line: "history widget berlin", first: `widget berlin: 11 versions, of them 5 corrections and 2 withdrawals`, schema: "history"},
	{question: "what do we say differently", line: "diff -at 0/3 -at 0/5", first: `5 outputs of 1 key told differently`, schema: "diff"},
	{question: "follow", line: "tail -e", first: `\S+Z  told       balance widget berlin 2026-01-01: 100  .*`, schema: "tail", json: "-J", once: true},
	{question: "follow corrections", line: "tail -e -only corrections", first: `\S+Z  corrected  balance widget berlin 2026-01-01: 70  .*`, schema: "tail", json: "-J", once: true},
	{question: "is it right", line: "verify", first: `PASS  5 source records, 11 messages; an independent recomputation agrees`, schema: "verify", once: true},
	{question: "is it right now", line: "verify -live", first: `PASS  5 source records, 11 messages; an independent recomputation agrees`, schema: "verify", once: true},
	{question: "is it right all the time", line: "audit -once", first: `PASS  5 source records, 11 messages; an independent recomputation agrees.*`, schema: "audit", once: true},
	{question: "bad input, conflicts", line: "diagnostics", first: `nothing rejected, no conflict, no blocked key`, schema: "diagnostics"},
	{question: "replay", line: "replay", first: `SAME  5 records recorded with the same digest; nothing was changed, -execute commits a higher epoch`, schema: "replay", once: true},
	{question: "rebuild", line: "rebuild -namespace demo2 -topic amends-test-output2 -manifest-out @rebuilt.json", first: `DRY RUN  rebuild of demo into demo2, .*5 source offsets to read, 11 messages to publish.*`, schema: "rebuild", once: true},
	{question: "are two the same", line: "compare -with @pipeline.json", first: `EQUAL  demo and demo hold the same 4 outputs`, schema: "compare"},
	{question: "upgrade: where am I", line: "migrate status", first: `up to date: version \d+`, schema: "migrate-status"},
	{question: "upgrade: what would be", line: "migrate plan", first: `nothing to do: the schema is up to date`, schema: "migrate-plan"},
	{question: "upgrade", line: "migrate up", first: `up to date: version \d+; 0 migrations applied`, schema: "migrate-up", once: true},
	{question: "how far is it", line: "inspect", first: `lag 0; outbox 0; 0 blocked keys; quarantine 0; .*`, schema: "inspect"},
	{question: "what does the view hold", line: "view show", first: `demo: live snapshot, not a verification`, schema: "view-show"},
	{question: "anything else", line: "sql -c 'SELECT day, close FROM balances WHERE present ORDER BY day'", first: `day         close`, schema: "sql"},
	{question: "what is set", line: "config print", first: `4 settings are not the default: 4 in the environment, no configuration file, 0 by the running embedded stack`, schema: "config-print", once: true},
	{question: "what runs", line: "version", first: `amends .* go1\S+ \S+/\S+`, schema: "version", once: true},
}

// blocked is asked after a conflict and two records that are none.
var blocked = []row{
	{question: "is it healthy", line: "status", code: 4, first: `BLOCKED  1 key blocked; lag 0; outbox 0; 1 blocked key; quarantine 2; verified BLOCKED .*`, schema: "status"},
	{question: "what is the balance", line: "balance widget berlin", first: `widget berlin: 50 \(as of 2026-01-02; .*frozen since 0/5 by BLOCKED AMBIGUOUS T-1 r2\)`, schema: "balance"},
	{question: "why", line: "explain widget berlin 2026-01-02", first: `widget berlin as of 2026-01-02: 50 .*BLOCKED.*`, schema: "explain"},
	{question: "what did we say then", line: "history widget berlin", first: `widget berlin: 12 versions, of them .*`, schema: "history"},
	{question: "is it right", line: "verify -deep", code: 4, first: `BLOCKED  1 key blocked; everything else agrees with an independent recomputation`, schema: "verify", once: true},
	{question: "is it right all the time", line: "audit -once", code: 4, first: `BLOCKED  1 key blocked.*`, schema: "audit", once: true},
	{question: "bad input, conflicts", line: "diagnostics", first: `2 records rejected \(MALFORMED 2\); 1 blocked key; 1 record in conflict`, schema: "diagnostics"},
	{question: "how far is it", line: "inspect", first: `.*1 blocked key.*quarantine 2.*`, schema: "inspect"},
	{question: "what does the view hold", line: "view show", first: `demo: live snapshot, not a verification`, schema: "view-show"},
	{question: "replay", line: "replay", first: `SAME  8 records .*`, schema: "replay", once: true},
}

// Every row of the operator's table: the command, its first line, its code, its JSON, and -watch on what only reads.
func TestOperatorsDay(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.run()
	x.load("before.jsonl", "correction.jsonl", "cancel-last-day.jsonl")
	for _, r := range healthy {
		x.walk(r)
	}
	want := `output,item,location,day,version,present,close,previous,threshold,status,partition,sequence,cause_offset,cause_txn_id,cause_revision,value
balance,widget,berlin,2026-01-01,2,true,70,,,,0,5,3,T-1,2,70
balance,widget,berlin,2026-01-02,2,true,50,,,,0,6,3,T-1,2,50
alert,widget,berlin,2026-01-02,1,true,50,70,60,,0,7,3,T-1,2,70 -> 50 below 60
balance,widget,berlin,2026-01-03,3,false,,,,,0,10,4,T-3,2,withdrawn
alert,widget,berlin,2026-01-03,2,false,,,,,0,9,3,T-1,2,withdrawn
status,widget,berlin,,1,true,,,,READY,0,1,0,T-1,1,READY
`
	if diff := cmp.Diff(want, x.call(0, "amends view show -o csv").Stdout); diff != "" {
		t.Error(diff)
	}
	x.Write("conflict.jsonl", `{"schema":1,"txn_id":"T-1","revision":2,"state":"active","item":"widget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":71}`+"\n")
	x.Write("bad.raw", `{"partition":1,"key":null,"value":"AP8="}`+"\n"+`{"partition":0,"key":"e30=","value":"e30="}`+"\n")
	x.load("@conflict.jsonl", "@bad.raw")
	for _, r := range blocked {
		x.walk(r)
	}
	x.resolve()
}

// resolve loads the record that diagnostics prints for the candidate that was there first: the key is certified again.
func (x *space) resolve() {
	x.t.Helper()
	for _, line := range strings.Split(x.call(0, "amends diagnostics").Stdout, "\n") {
		if strings.HasPrefix(line, `{"schema":1,"txn_id":"T-1","revision":3,`) && strings.HasSuffix(line, `"quantity":70}`) {
			x.Write("resolving.jsonl", line+"\n")
		}
	}
	if n := programtest.Conforms(x.t, "source-load", x.call(0, "amends source load -file @resolving.jsonl -o json").Stdout); n != 1 {
		x.t.Errorf("%d records published", n)
	}
	x.call(0, "amends verify")
	x.walk(row{question: "is it healthy", line: "status", first: `OK  lag 0; outbox 0; 0 blocked keys; quarantine 2; verified PASS .*`, schema: "status"})
	x.walk(row{question: "bad input, conflicts", line: "diagnostics", first: `2 records rejected \(MALFORMED 2\); .*`, schema: "diagnostics"})
}

// walk asks one row.
func (x *space) walk(r row) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), time.Minute)
	defer cancel()
	text := x.Call(ctx, "amends "+r.line)
	if text.Code != r.code {
		x.t.Errorf("%s: %s: code %d, want %d\n%s%s", r.question, r.line, text.Code, r.code, text.Stdout, text.Stderr)
	}
	if !regexp.MustCompile("^(?:" + r.first + ")$").MatchString(text.First()) {
		x.t.Errorf("%s: %s: the first line is %q, want %q", r.question, r.line, text.First(), r.first)
	}
	if r.json == "" {
		r.json = "-o json"
	}
	answer := x.Call(ctx, "amends "+r.line+" "+r.json)
	if answer.Code != r.code {
		x.t.Errorf("%s: %s %s: code %d, want %d\n%s", r.question, r.line, r.json, answer.Code, r.code, answer.Stderr)
	}
	if programtest.Conforms(x.t, r.schema, answer.Stdout) == 0 {
		x.t.Errorf("%s: %s %s answers nothing", r.question, r.line, r.json)
	}
	if !r.once {
		x.watched(r)
	}
}

// watched asks with -watch until two answers are there; being stopped is no failure, whatever the code of a round.
func (x *space) watched(r row) {
	x.t.Helper()
	ctx, stop := context.WithTimeout(x.t.Context(), time.Minute)
	defer stop()
	a := x.until(ctx, stop, "amends "+r.line+" "+r.json+" -watch 100ms", func(out string) bool {
		d := json.NewDecoder(strings.NewReader(out))
		n := 0
		for ; d.More(); n++ {
			if d.Decode(new(any)) != nil {
				break
			}
		}
		return n >= 2
	})
	if a.Code != 0 || programtest.Conforms(x.t, r.schema, a.Stdout) < 2 {
		x.t.Errorf("%s: %s -watch: code %d\n%s%s", r.question, r.line, a.Code, a.Stdout, a.Stderr)
	}
}

// The statuses that need trouble, with their codes: DRIFT 5, an empty database 13, another configuration 13, another binary's schema 13.
func TestOperatorsTrouble(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.Env["AMENDS_DATABASE_URL"] = pgtest.New(t)
	for _, line := range []string{"status", "balance widget berlin", "explain widget berlin", "history widget berlin", "diff -at 0/0 -at 0/1", "tail -e", "verify", "audit -once", "diagnostics",
		"replay", "inspect", "view show", "sql -c 'TABLE balances'"} {
		if a := x.call(13, "amends "+line); !strings.Contains(a.Cause(), "no amends schema") || a.Stdout != "" {
			t.Errorf("%s of an empty database: %s%s", line, a.Stdout, a.Stderr)
		}
	}
	x.Env["AMENDS_DATABASE_URL"] = x.database
	x.run()
	x.load("before.jsonl")
	conn, err := pgx.Connect(t.Context(), x.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	change := func(sql string) {
		t.Helper()
		if tag, err := conn.Exec(t.Context(), sql); err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%s: %v %v", sql, tag, err)
		}
	}
	change("UPDATE amends.view_rows SET close = 51 WHERE close = 50 AND kind = 1")
	x.walk(row{question: "is it right", line: "verify", code: 5, first: `DRIFT  1 difference; the first: ROW partition 0 balance widget berlin 2026-01-03.*`, schema: "verify", once: true})
	x.walk(row{question: "is it healthy", line: "status", code: 5, first: `DRIFT  .*`, schema: "status"})
	change("UPDATE amends.view_rows SET close = 50 WHERE close = 51 AND kind = 1")
	x.call(0, "amends verify")
	x.call(0, "amends status")
	change("UPDATE amends.schema_migrations SET checksum = sha256('x') WHERE version = 2")
	x.walk(row{question: "upgrade: where am I", line: "migrate status", code: 13, first: `does not fit this binary: migration 2 \(transport\) is applied with another checksum`, schema: "migrate-status"})
	for _, line := range []string{"migrate plan", "migrate up", "status", "view show"} {
		if a := x.call(13, "amends "+line); !strings.Contains(a.Cause(), "migration 2 (transport) has checksum") {
			t.Errorf("%s: %s", line, a.Stderr)
		}
	}
}
