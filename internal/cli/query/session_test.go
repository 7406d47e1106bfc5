package query_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"amends/internal/programtest"
)

var (
	widget   = [2]string{"widget", "berlin"}
	moments  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	manySpan = regexp.MustCompile(` {2,}`)
)

// plain makes an answer comparable: every time is T, columns have one space.
func plain(text string) []string {
	return strings.Split(strings.TrimRight(manySpan.ReplaceAllString(moments.ReplaceAllString(text, "T"), " "), "\n"), "\n")
}

func (s *space) expect(line string, want ...string) {
	s.t.Helper()
	if d := cmp.Diff(want, plain(s.run(line))); d != "" {
		s.t.Errorf("amends %s (-by hand +printed):\n%s", line, d)
	}
}

// SC40 through the real pipeline: why is 01-02 at 50, and what was published for 01-03 before the correction.
func TestSC40WhyAndWhatBefore(t *testing.T) {
	t.Parallel()
	s := newSpace(t, "")
	s.start("source,relay,view")
	for _, f := range []string{"before.jsonl", "correction.jsonl", "cancel-last-day.jsonl"} {
		s.load(fixture(t, f)...)
	}
	explained := s.Must(0, "", "amends explain widget berlin 2026-01-02").Stdout
	if d := cmp.Diff([]string{
		"widget berlin as of 2026-01-02: 50 (alert 70 -> 50 below 60)",
		"",
		"OUTPUT DAY VERSION VALUE SOURCE CAUSE COMMITTED PUBLISHED",
		"balance 2026-01-02 1 80 0/1 T-2 revision 1, issue 20 on 2026-01-02: -20 T T at 0/2",
		"balance 2026-01-02 2 50 0/3 T-1 revision 1 -> 2, receipt 100 -> 70 on 2026-01-01: -30 T T at 0/6",
		"alert 2026-01-02 1 70 -> 50 below 60 0/3 T-1 revision 1 -> 2, receipt 100 -> 70 on 2026-01-01: -30 T T at 0/7",
		"",
		"50 is the sum of",
		"",
		"AMOUNT TOTAL DAY SOURCE ASSERTION",
		"+0 0 - - opening balance",
		"+70 70 2026-01-01 0/3 T-1 revision 2, receipt",
		"-20 50 2026-01-02 0/1 T-2 revision 1, issue",
	}, plain(explained)); d != "" {
		t.Error(d)
	}
	for _, known := range []string{"3", "0/3", s.committed(2)} {
		s.expect("balance widget berlin 2026-01-03 -known-at "+known,
			"widget berlin as of 2026-01-03: 50 (alert 80 -> 50 below 60; as known below 0/3)")
	}
	s.expect("balance widget berlin 2026-01-03", "widget berlin as of 2026-01-03: 50 (the close of 2026-01-02, the latest day before that has a balance; alert 70 -> 50 below 60)")
	// Outside of all days and all knowledge: the opening balance, or the latest.
	s.expect("balance widget berlin 0001-01-01", "widget berlin as of 0001-01-01: 0 (the opening balance: no day until then has a balance)")
	s.expect("balance widget berlin 9999-12-31", "widget berlin as of 9999-12-31: 50 (the close of 2026-01-02, the latest day before that has a balance; alert 70 -> 50 below 60)")
	s.expect("balance widget berlin -from 0001-01-01 -to 9999-12-31 -o csv", "item,location,day,balance,close,version,alert,trusted",
		"widget,berlin,2026-01-01,70,70,2,false,true", "widget,berlin,2026-01-02,50,50,2,true,true")
	for _, known := range []string{"0", "0/0", "0001-01-01T00:00Z", "2000-01-01T00:00+14:00"} {
		s.expect("balance widget berlin -known-at "+known, "widget berlin: 0 (the opening balance: no record was known; as known below 0/0)")
		s.expect("history widget berlin -kind balance -o csv -known-at "+known,
			"partition,sequence,output,item,location,day,version,present,value,cause_offset,cause_txn_id,cause_revision,cause_day,arrived_at,committed_at,published_at,output_offset")
	}
	s.expect("history widget berlin 2026-01-03",
		"widget berlin 2026-01-03: 5 versions, of them 3 corrections and 2 withdrawals",
		"now widget berlin: 50 (as of 2026-01-02; alert 70 -> 50 below 60)",
		"",
		"SEQUENCE OUTPUT DAY VERSION VALUE SOURCE CAUSE ARRIVED COMMITTED PUBLISHED",
		"3 balance 2026-01-03 1 50 0/2 T-3 revision 1, issue 30 on 2026-01-03: -30 T T T at 0/3",
		"4 alert 2026-01-03 1 80 -> 50 below 60 0/2 T-3 revision 1, issue 30 on 2026-01-03: -30 T T T at 0/4",
		"8 balance 2026-01-03 2 20 0/3 T-1 revision 1 -> 2, receipt 100 -> 70 on 2026-01-01: -30 T T T at 0/8",
		"9 alert 2026-01-03 2 withdrawn 0/3 T-1 revision 1 -> 2, receipt 100 -> 70 on 2026-01-01: -30 T T T at 0/9",
		"10 balance 2026-01-03 3 withdrawn 0/4 T-3 revision 1 -> 2, issue 30 on 2026-01-03 -> cancelled: +30 T T T at 0/10")
	s.expect("history widget berlin 2026-01-01",
		"widget berlin 2026-01-01: 2 versions, of them 1 correction and 0 withdrawals",
		"now widget berlin: 50 (as of 2026-01-02; alert 70 -> 50 below 60)",
		"",
		"SEQUENCE OUTPUT DAY VERSION VALUE SOURCE CAUSE ARRIVED COMMITTED PUBLISHED",
		"0 balance 2026-01-01 1 100 0/0 T-1 revision 1, receipt 100 on 2026-01-01: +100 T T T at 0/0",
		"5 balance 2026-01-01 2 70 0/3 T-1 revision 1 -> 2, receipt 100 -> 70 on 2026-01-01: -30 T T T at 0/5")
	s.expect("diff -at 3 -at 5 widget berlin -kind balance",
		"3 outputs of 1 key told differently",
		"partition 0: source below 3, then below 5",
		"",
		"OUTPUT ITEM LOCATION DAY BEFORE AFTER CHANGE VERSIONS SOURCE CAUSE COMMITTED",
		"balance widget berlin 2026-01-01 100 70 -30 1 -> 2 0/3 T-1 revision 2, receipt 70 on 2026-01-01 T",
		"balance widget berlin 2026-01-02 80 50 -30 1 -> 2 0/3 T-1 revision 2, receipt 70 on 2026-01-01 T",
		"balance widget berlin 2026-01-03 50 withdrawn - 1 -> 3 0/4 T-3 revision 2, cancelled T")
	s.expect("diff -at 3 -at 5 widget berlin -kind alert -o csv",
		"partition,output,item,location,day,before_version,before,after_version,after,change,cause_offset,cause_txn_id,cause_revision,committed_at",
		"0,alert,widget,berlin,2026-01-02,0,,1,50,,3,T-1,2,T",
		"0,alert,widget,berlin,2026-01-03,1,50,2,,,3,T-1,2,T")
	s.expect("history widget berlin -known-at 1 -o csv",
		"partition,sequence,output,item,location,day,version,present,value,cause_offset,cause_txn_id,cause_revision,cause_day,arrived_at,committed_at,published_at,output_offset",
		"0,0,balance,widget,berlin,2026-01-01,1,true,100,0,T-1,1,2026-01-01,T,T,T,0",
		"0,1,status,widget,berlin,,1,true,READY,0,T-1,1,2026-01-01,T,T,T,1")
	s.expect("history widget berlin 2026-01-03 -kind alert -o csv",
		"partition,sequence,output,item,location,day,version,present,value,cause_offset,cause_txn_id,cause_revision,cause_day,arrived_at,committed_at,published_at,output_offset",
		"0,4,alert,widget,berlin,2026-01-03,1,true,50,2,T-3,1,2026-01-03,T,T,T,4",
		"0,9,alert,widget,berlin,2026-01-03,2,false,,3,T-1,2,2026-01-01,T,T,T,9")
	s.refusals()
	s.tails()
}

// committed returns when the decision at an offset was committed, as history says.
func (s *space) committed(offset int64) string {
	s.t.Helper()
	var h struct {
		Versions []struct {
			Cause struct {
				Offset    int64
				Committed string `json:"committed_at"`
			}
		}
	}
	if err := json.Unmarshal([]byte(s.run("history widget berlin -o json")), &h); err != nil {
		s.t.Fatal(err)
	}
	for _, v := range h.Versions {
		if v.Cause.Offset == offset {
			return v.Cause.Committed
		}
	}
	s.t.Fatalf("no version by %d", offset)
	return ""
}

// refusals are wrong questions about the worked example.
func (s *space) refusals() {
	for line, want := range map[string]string{
		"explain widget":                                        "needs ITEM LOCATION [DAY]",
		"explain widget berlin 2026-01-02 x":                    `takes no argument "x"`,
		"balance widget berlin 2026-02-30":                      "no business day",
		"balance widget berlin -known-at 2026-01-02":            "is a business day, not a time",
		"balance widget berlin -known-at 1/3":                   "lives on partition 0",
		"balance widget berlin 2026-01-02 -to 2026-1-3":         "no business day",
		"balance widget berlin 2026-01-02 -as-of 2026-01-03":    "one of them",
		"balance widget berlin -from 2026-01-03 -to 2026-01-02": "is after",
		"explain widget berlin -kind close":                     "balance, alert or status",
		"explain widget berlin -o csv":                          "text or json",
		"history widget berlin -o yaml":                         "text, json or csv",
		"diff -at 3":                                            "given twice",
		"diff -at 3 -at 5":                                      "PARTITION/OFFSET",
		"diff -at 0/3 -at 1/5":                                  "two partitions",
		"diff -at 7/3 -at 7/5":                                  "no partition 7",
		"diff -at 1/3 -at 1/5 widget berlin":                    "lives on partition 0, and the point is of partition 1",
		"diff -at 0001-01-01T00:00Z -at 3":                      "offset 3 of which partition?",
		"diff widget -at 3 -at 5":                               "needs [ITEM LOCATION]",
		"tail -since 2026-01-02T10:00:00":                       "has no zone",
		"tail -since 2026-01-02T10:00":                          "has no zone",
		"balance widget \xff":                                   `"\xff": an item or location is 1 to 512 bytes of UTF-8`,
		"tail -since 9/1 -e":                                    "no partition 9",
		"tail -only some":                                       "corrections or first",
		"tail -interval 1ms":                                    "50ms to 1m",
		"balance \"widget berlin -quoted":                       "not a quoted string",
		"balance widget " + strings.Repeat("b", 513):            `: "` + strings.Repeat("b", 60) + `"... of 513 bytes: an item or location is 1 to 512 bytes`,
	} {
		if a := s.want(2, line); !strings.Contains(a.Stderr, want) || a.Stdout != "" {
			s.t.Errorf("amends %s: %q is not in %s", line, want, a.Stderr)
		}
	}
	for line, want := range map[string]string{
		"balance widget Berlin": `key "widget" "Berlin" is not configured, so every record of it is rejected; recorded are: "widget" "berlin"`,
		"explain berlin widget": `recorded are: "widget" "berlin"`,
		"history nut berlin":    `key "nut" "berlin" is not configured`,
	} {
		if a := s.want(1, line); !strings.Contains(a.Stderr, want) || a.Stdout != "" {
			s.t.Errorf("amends %s: %q is not in %s", line, want, a.Stderr)
		}
	}
}

// tails follows the worked example: everything at once, and what comes while it runs, until SIGTERM (exit 0).
func (s *space) tails() {
	s.t.Helper()
	s.expect("tail -e -only corrections",
		"T corrected balance widget berlin 2026-01-01: 70 (version 2, source 0/3, T-1 revision 2, published T at 0/5)",
		"T corrected balance widget berlin 2026-01-02: 50 (version 2, source 0/3, T-1 revision 2, published T at 0/6)",
		"T corrected balance widget berlin 2026-01-03: 20 (version 2, source 0/3, T-1 revision 2, published T at 0/8)",
		"T withdrawn alert widget berlin 2026-01-03: withdrawn (version 2, source 0/3, T-1 revision 2, published T at 0/9)",
		"T withdrawn balance widget berlin 2026-01-03: withdrawn (version 3, source 0/4, T-3 revision 2, published T at 0/10)")
	if got := plain(s.run("tail -e -J -only first -since 0/1")); len(got) != 4 || !strings.HasPrefix(got[0], `{"schema":1,"telling":"told","output":"balance"`) {
		s.t.Errorf("%q", got)
	}
	tail := s.Start("amends tail -J -interval 50ms -since 0/4")
	seen := func(n int) {
		s.t.Helper()
		for until := time.Now().Add(programtest.Deadline); strings.Count(tail.Stdout.String(), "\n") < n; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				s.t.Fatalf("%d lines expected in %q; %s", n, tail.Stdout, tail.Stderr)
			}
		}
	}
	seen(1)
	s.load(movement(widget, "T-3", 3, "2026-01-03", "issue", 10))
	seen(2)
	tail.Stop(programtest.Deadline)
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(tail.Stdout.String()), "\n") {
		var v struct {
			Telling, Output, Day string
			Version, Sequence    int64
			Payload              json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			s.t.Fatalf("%v in %q", err, line)
		}
		got = append(got, v.Telling+" "+v.Output+" "+v.Day+" "+string(v.Payload))
	}
	if d := cmp.Diff([]string{"withdrawn balance 2026-01-03 null", `corrected balance 2026-01-03 {"close":40}`}, got); d != "" {
		s.t.Error(d)
	}
}
