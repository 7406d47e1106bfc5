package query_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/pgtest"
	"amends/internal/programtest"
)

// shop has two keys with opening balances at scale 3, and admits every other key.
const shop = `{"schema_version":1,"namespace":"demo","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":3,
	"stock_keys":[{"item":"nut","location":"paris","partition":0,"opening_balance":500,"threshold":null},
		{"item":"bolt","location":"paris","partition":1,"opening_balance":0,"threshold":2000}],
	"open_keys":{"opening_balance":0,"threshold":null}}`

// C15, C17, C18, C22: a balance of every day and window, by hand: at scale 3, 1.000 in and 9 x 0.111 out, then a count of 0.
func TestC15C17C18C22BalancesOfEveryDayAndWindow(t *testing.T) {
	t.Parallel()
	s := newSpace(t, shop)
	s.start("source,relay,view")
	nut := [2]string{"nut", "paris"}
	records := []string{movement(nut, "in", 1, "2026-01-02", "receipt", 1000)}
	for i := range 9 {
		records = append(records, movement(nut, fmt.Sprintf("out-%d", i), 1, fmt.Sprintf("2026-01-%02d", 3+i/3), "issue", 111))
	}
	records = append(records, movement(nut, "count", 1, "2026-01-09", "closing_count", 0))
	s.load(records...)
	// Closes by hand: opening 500; 01-02 1500; then three issues of 111 a day on 01-03, 01-04, 01-05; counted 0 on 01-09.
	closes := map[int]int64{2: 1500, 3: 1167, 4: 834, 5: 501, 9: 0}
	for from := 1; from <= 10; from++ {
		for to := from; to <= 10; to++ {
			var got struct {
				Balance  int64
				Day      *string
				From     *string
				AsOf     *string `json:"as_of"`
				Balances []struct {
					Day    string
					Close  int64
					Scaled string
				}
			}
			line := fmt.Sprintf("balance nut paris -from 2026-01-%02d -to 2026-01-%02d -o json", from, to)
			if err := json.Unmarshal([]byte(s.run(line)), &got); err != nil {
				t.Fatal(err)
			}
			as, at := int64(500), ""
			var rows []string
			for day := 1; day <= to; day++ {
				if c, ok := closes[day]; ok {
					as, at = c, fmt.Sprintf("2026-01-%02d", day)
					if day >= from {
						rows = append(rows, fmt.Sprintf("2026-01-%02d %d %d.%03d", day, c, c/1000, c%1000))
					}
				}
			}
			var printed []string
			for _, b := range got.Balances {
				printed = append(printed, fmt.Sprintf("%s %d %s", b.Day, b.Close, b.Scaled))
			}
			if d := cmp.Diff(rows, printed); d != "" || got.Balance != as || got.Day == nil != (at == "") || at != "" && *got.Day != at {
				t.Fatalf("%s: %+v, want %d of %q\n%s", line, got, as, at, d)
			}
		}
	}
	s.expect("balance nut paris 2026-01-01", "nut paris as of 2026-01-01: 0.500 (the opening balance: no day until then has a balance)")
	s.expect("balance nut paris", "nut paris: 0.000 (as of 2026-01-09)")
	s.expect("balance nut paris -as-of 2026-01-04 -o csv", "item,location,day,balance,close,version,alert,trusted", "nut,paris,2026-01-04,0.834,834,3,false,true") // three issues: three versions
	if got := plain(s.run("explain nut paris")); got[len(got)-1] != "+0.000 0.000 2026-01-09 0/10 count revision 1, closing count, which replaces what was before" {
		t.Errorf("%q", got)
	}
	s.load(movement(nut, "recount", 1, "2026-01-09", "closing_count", 0))
	if got := plain(s.run("explain nut paris")); got[len(got)-1] != "+0.000 0.000 2026-01-09 0/11 recount revision 1, closing count of the same" {
		t.Errorf("%q", got)
	}
	// The view's CSV has whole units, and beside them what the text shows.
	if rows := s.run("view show -o csv"); !regexp.MustCompile(`(?m)^balance,nut,paris,2026-01-05,\d+,true,501,,,,.*,0\.501$`).MatchString(rows) {
		t.Error(rows)
	}
	if got := plain(s.run("explain nut paris 2026-01-05 -lines 3")); !strings.Contains(strings.Join(got, "|"), "|+0.500 0.500 - - opening balance|+1.000 1.500 2026-01-02 - 1 movement of the day|-0.333 1.167 2026-01-03 - 3 movements of the day|-0.333 0.834") {
		t.Errorf("%q", got)
	}
}

// C26: a record of day 1 that arrives after those of day 20 keeps both: the day it is about, and when it came.
func TestC26TheDayAndTheArrivalOfALateRecord(t *testing.T) {
	t.Parallel()
	s := newSpace(t, shop)
	s.start("source,relay,view")
	nut := [2]string{"nut", "paris"}
	s.load(movement(nut, "A", 1, "2026-01-20", "receipt", 2000))
	s.load(movement(nut, "late", 1, "2026-01-01", "receipt", 7000))
	var h struct {
		Versions []struct {
			Output, Day string
			Version     int64
			Cause       struct {
				TxnID     string `json:"txn_id"`
				Offset    int64
				Arrived   string `json:"arrived_at"`
				Committed string `json:"committed_at"`
				Change    int64
				Asserts   struct{ Day string }
			}
		}
	}
	if err := json.Unmarshal([]byte(s.run("history nut paris -kind balance -o json")), &h); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range h.Versions {
		c := &v.Cause
		got = append(got, fmt.Sprintf("%s v%d by %s of %s at %d: %d", v.Day, v.Version, c.TxnID, c.Asserts.Day, c.Offset, c.Change))
	}
	want := []string{"2026-01-20 v1 by A of 2026-01-20 at 0: 2000", "2026-01-01 v1 by late of 2026-01-01 at 1: 7000", "2026-01-20 v2 by late of 2026-01-01 at 1: 7000"}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	first, late := h.Versions[0].Cause, h.Versions[2].Cause
	if late.Arrived <= first.Arrived || late.Committed <= first.Committed || late.Arrived > late.Committed {
		t.Errorf("the late record arrived at %s and was committed at %s; the first at %s and %s", late.Arrived, late.Committed, first.Arrived, first.Committed)
	}
	text := s.run("history nut paris 2026-01-20")
	if seconds := late.Arrived[:19] + "Z"; !strings.Contains(text, "late revision 1, receipt 7.000 on 2026-01-01: +7.000") || !strings.Contains(text, seconds) {
		t.Errorf("neither the day nor the arrival %s of the late record is in\n%s", seconds, text)
	}
	// What the late record does not change stays known as it was before it came.
	s.expect("balance nut paris 2026-01-20 -known-at "+first.Committed, "nut paris as of 2026-01-20: 2.500 (as known below 0/1)")
}

// A blocked key: its balance is frozen, and the lines are those from before the record that blocked it, also while
// authority goes on; a higher revision resolves it.
func TestBlockedKeyIsExplainedAsItWasFrozen(t *testing.T) {
	t.Parallel()
	s := newSpace(t, shop)
	s.start("source,relay,view")
	bolt := [2]string{"bolt", "paris"}
	s.load(movement(bolt, "A", 1, "2026-01-02", "receipt", 5000), movement(bolt, "B", 1, "2026-01-03", "issue", 1000),
		movement(bolt, "A", 1, "2026-01-02", "receipt", 6000), // 1/2 contradicts 1/0
		movement(bolt, "C", 1, "2026-01-03", "issue", 2500), movement(bolt, "B", 2, "2026-01-03", "issue", 1))
	s.expect("balance bolt paris", "bolt paris: 4.000 (as of 2026-01-03; frozen since 1/2 by BLOCKED AMBIGUOUS A r1)")
	s.expect("explain bolt paris",
		"bolt paris: 4.000 (as of 2026-01-03; frozen since 1/2 by BLOCKED AMBIGUOUS A r1)",
		"",
		"OUTPUT DAY VERSION VALUE SOURCE CAUSE COMMITTED PUBLISHED",
		"status - 1 READY 1/0 A revision 1, receipt 5.000 on 2026-01-02: +5.000 T T at 1/1",
		"status - 2 BLOCKED AMBIGUOUS A r1 1/2 A revision 1, receipt 5.000 on 2026-01-02 contradicted by receipt 6.000 on 2026-01-02 T T at 1/3",
		"",
		"4.000 is the sum of",
		"what applied before source 1/2, which blocked the key: A revision 1, receipt 5.000 on 2026-01-02 contradicted by receipt 6.000 on 2026-01-02",
		"",
		"AMOUNT TOTAL DAY SOURCE ASSERTION",
		"+0.000 0.000 - - opening balance",
		"+5.000 5.000 2026-01-02 1/0 A revision 1, receipt",
		"-1.000 4.000 2026-01-03 1/1 B revision 1, issue")
	s.load(movement(bolt, "A", 2, "2026-01-02", "receipt", 4000))
	// 4.000 - 2.500 - 0.001 = 1.499, below 2.000 after 4.000.
	s.expect("balance bolt paris 2026-01-31", "bolt paris as of 2026-01-31: 1.499 (the close of 2026-01-03, the latest day before that has a balance; alert 4.000 -> 1.499 below 2.000)")
	got := strings.Join(plain(s.run("explain bolt paris 2026-01-02")), "|")
	if !strings.Contains(got, "|balance 2026-01-02 2 4.000 1/5 A revision 1 -> 2, ambiguous -> receipt 4.000 on 2026-01-02, published was receipt 5.000 on 2026-01-02: -1.000 T T at") {
		t.Error(got)
	}
	s.expect("balance bolt paris -known-at 1/0", "bolt paris: 0.000 (the opening balance: no record was known; as known below 1/0)")
}

// C40: identifiers are found byte for byte, shown so that a terminal is safe, and found by what was shown.
func TestC40StrangeIdentifiers(t *testing.T) {
	t.Parallel()
	s := newSpace(t, shop)
	s.start("source,relay,view")
	strange := [2]string{"a\x00\u202e<b>", "Zo\u0065\u0301"}
	line := movement([2]string{"S", "L"}, "T", 1, "2026-01-02", "receipt", 3)
	value := strings.NewReplacer(`"S"`, `"a\u0000\u202e<b>"`, `"L"`, `"Zo`+"e\u0301"+`"`).Replace(line)
	s.load(value)
	shown := `"a\x00\u202e<b>" "Zoe\u0301"`
	a := s.call("balance", "-quoted", `"a\x00\u202e<b>"`, `"Zoe\u0301"`)
	if a.Code != 0 || a.First() != shown+": 0.003 (as of 2026-01-02)" {
		t.Errorf("%d %q %s", a.Code, a.Stdout, a.Stderr)
	}
	a = s.call("balance", "-quoted", "-o", "json", `"a\x00\u202e<b>"`, `"Zoe\u0301"`)
	var got struct{ Item, Location string }
	if err := json.Unmarshal([]byte(a.Stdout), &got); err != nil || got.Item != strange[0] || got.Location != strange[1] {
		t.Errorf("%q %v", a.Stdout, err)
	}
	if a = s.call("balance", "-quoted", `"a\x00\u202e<b>"`, `"Zo\u00e9"`); a.Code != 1 || !strings.Contains(a.Stderr, "has no valid record") {
		t.Errorf("the composed spelling is another key: %d %s", a.Code, a.Stderr)
	}
	if strings.ContainsRune(s.run("tail -e"), '\u202e') {
		t.Error("a direction mark reached the terminal")
	}
	if a = s.call("balance", strings.Repeat("x", ledger.MaxIdentifierBytes+1), "here"); a.Code != 2 {
		t.Errorf("an item of 513 bytes: code %d", a.Code)
	}
}

// The answers of an empty database, an unbound namespace, and one that is not there.
func TestReadOnlyCommandsCreateNothing(t *testing.T) {
	t.Parallel()
	s := newSpace(t, "")
	lines := []string{"explain widget berlin", "balance widget berlin", "history widget berlin", "diff -at 0/0 -at 0/1", "tail -e"}
	for _, line := range lines[:3] {
		if a := s.want(1, line); !strings.Contains(a.Stderr, "has no valid record") {
			t.Errorf("%s: %s", line, a.Stderr)
		}
	}
	s.expect("diff -at 0/0 -at 0/1", "0 outputs of 0 keys told differently", "partition 0: source below 0, then below 0")
	s.Env["AMENDS_MANIFEST"] = s.Dir + "/source.json"
	s.expect("tail -e", "")
	s.Env["AMENDS_DATABASE_URL"] = pgtest.New(t)
	for _, line := range lines {
		s.want(13, line)
	}
}

// A tail outlives a database that is away for a while: nothing is lost, nothing told twice.
func TestTailGoesOnAfterTheDatabaseWasAway(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	s := newSpace(t, "")
	s.Env["AMENDS_DATABASE_URL"] = server.New()
	s.Write("away-source.json", s.run("source create -namespace away -topic away-source"))
	s.Env["AMENDS_MANIFEST"] = s.Write("away.json", s.run("output create -manifest @away-source.json -topic away-output"))
	s.start("source,relay,view")
	s.load(fixture(t, "before.jsonl")...)
	tail := s.Start("amends tail -J -interval 50ms -since 0/0")
	lines := func(n int, of *programtest.Text, what string) {
		t.Helper()
		for until := time.Now().Add(programtest.Deadline); strings.Count(of.String(), what) < n; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%d of %q expected in %q; %s", n, what, tail.Stdout, tail.Stderr)
			}
		}
	}
	lines(5, tail.Stdout, "\n")
	server.Stop()
	lines(1, tail.Stderr, "waiting for PostgreSQL")
	server.Start()
	s.load(fixture(t, "correction.jsonl")...)
	lines(10, tail.Stdout, "\n")
	tail.Stop(programtest.Deadline)
	for i, line := range strings.Split(strings.TrimSpace(tail.Stdout.String()), "\n") {
		if !strings.Contains(line, fmt.Sprintf(`"sequence":%d,`, i)) {
			t.Errorf("line %d: %s", i, line)
		}
	}
}
