package operate_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"
)

const widgetKey = `{"item":"widget","location":"berlin"}`

// Every rejected record is listed with code, coordinates, bytes as text and hex; the export is what the loader takes; a record of
// which only the beginning is kept is named and left out (SC15).
func TestSC15DiagnosticsRejected(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.want(0, "", "diagnostics").has(t, "nothing rejected, no conflict, no blocked key")
	bad := [][2]string{{widgetKey, "\xff\x00\x1b[31m"}, {widgetKey, `{"schema":2}`}, {"", `{"schema":1}`}, {widgetKey, "not json"}}
	for _, r := range bad {
		x.publish(sourceTopic, 0, r[0], r[1])
	}
	x.publish(sourceTopic, 0, widgetKey, strings.Repeat("x", 65_537))
	x.publish(sourceTopic, 1, widgetKey, worked[0])
	x.run("source")
	a := x.eventually(0, "6 records rejected (TOO_LARGE 1, MALFORMED 3, UNSUPPORTED_SCHEMA 1, ROUTING 1); 0 blocked keys; 0 records in conflict", "diagnostics")
	a.has(t, "\nrejected 0/0  MALFORMED  decided ", `  value  "\xff\x00\x1b[31m"`, "         ff 00 1b 5b 33 31 6d\n", "\nrejected 0/1  UNSUPPORTED_SCHEMA", "\nrejected 1/0  ROUTING",
		"and 65296 bytes more", "of 65537 bytes the first 65536 are kept")
	page := x.want(0, "", "diagnostics -only rejected -limit 2")
	page.has(t, "rejected 0/1", "\nmore: amends diagnostics -manifest "+x.Path("pipeline.json")+" -limit 2 -only rejected -after 0/1\n")
	if strings.Contains(page.Stdout, "rejected 0/2") {
		t.Error("three of two")
	}
	page = x.want(0, "", "diagnostics -only rejected -limit 4 -after 0/1")
	if page.has(t, "rejected 0/2", "rejected 1/0"); strings.Contains(page.Stdout, "rejected 0/1  ") || strings.Contains(page.Stdout, "more:") {
		t.Error(page.Stdout) // four of the four behind the place: there is no other page
	}
	records := x.want(0, "", "diagnostics -o json").object(t)["rejected"].(map[string]any)["records"].([]any)
	if len(records) != 6 {
		t.Fatalf("%d records", len(records))
	}
	for i, want := range []map[string]any{
		{"partition": 0.0, "offset": 0.0, "code": "MALFORMED", "whole": true, "value_hex": hex.EncodeToString([]byte(bad[0][1])), "value_text": "\uFFFD\x00\x1b[31m", "key_text": widgetKey},
		{"offset": 1.0, "code": "UNSUPPORTED_SCHEMA", "value_text": bad[1][1]},
		{"offset": 2.0, "code": "MALFORMED", "key_hex": "", "key_length": 0.0},
		{"offset": 3.0, "code": "MALFORMED"},
		{"offset": 4.0, "code": "TOO_LARGE", "whole": false, "value_length": 65537.0},
		{"partition": 1.0, "offset": 0.0, "code": "ROUTING", "value_text": worked[0]},
	} {
		for name, v := range want {
			if got := records[i].(map[string]any)[name]; got != v {
				t.Errorf("record %d: %s is %v, want %v", i, name, got, v)
			}
		}
	}
	out := x.want(0, "exported 5 rejected records, left out 1", "diagnostics -export raw")
	if !strings.Contains(out.Stderr, "left out 0/4: TOO_LARGE, of 37 key and 65537 value bytes the first 37 and 65536 are kept\n") {
		t.Error(out.Stderr)
	}
	line := func(p int, r [2]string) string {
		return fmt.Sprintf(`{"partition":%d,"key":"%s","value":"%s"}`+"\n", p, base64.StdEncoding.EncodeToString([]byte(r[0])), base64.StdEncoding.EncodeToString([]byte(r[1])))
	}
	if want := line(0, bad[0]) + line(0, bad[1]) + line(0, bad[2]) + line(0, bad[3]) + line(1, [2]string{widgetKey, worked[0]}); out.Stdout != want {
		t.Errorf("exported\n%swant\n%s", out.Stdout, want)
	}
	x.Write("bad.jsonl", out.Stdout)
	x.want(0, "published", "source load -format raw -file @bad.jsonl")
	x.eventually(0, "11 records rejected (TOO_LARGE 1, MALFORMED 6, UNSUPPORTED_SCHEMA 2, ROUTING 2)", "diagnostics")
}

// A current conflict shows both candidates and the record that makes each apply; the record as printed, loaded, makes the key
// READY with that candidate; the conflict is a superseded one then. Counts that disagree are shown with what withdraws each.
func TestSC10C24DiagnosticsResolveConflicts(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.run("source,relay,view")
	x.load(worked...)
	x.load(active("T-1", 2, "2026-01-01", "receipt", 71), active("T-1", 2, "2026-01-01", "receipt", 70), active("T-1", 1, "2026-01-01", "receipt", 99))
	x.load(assertion("gadget", "oslo", "C-1", 1, "2026-01-05", "closing_count", 7), assertion("gadget", "oslo", "C-2", 4, "2026-01-05", "closing_count", 9),
		assertion("gadget", "oslo", "C-3", 1, "2026-01-05", "opening_count", 3))
	x.eventually(4, "BLOCKED  2 keys blocked; lag 0; outbox 0; 2 blocked keys", "status -max-lag 1h")
	a := x.want(0, "", "diagnostics")
	a.has(t, "0 records rejected; 2 blocked keys; 2 records in conflict\n", "\nblocked widget berlin  AMBIGUOUS T-1 r2  the key for ", ", since 0/5\n",
		"  0/3  T-1 r2  receipt 70 on 2026-01-01  APPLIED  sent ", "  0/5  T-1 r2  receipt 71 on 2026-01-01  CONFLICT  sent ", "said 2 times",
		"\nblocked gadget oslo  COUNTS_DISAGREE 2026-01-05", "closing_count 7 on 2026-01-05", "closing_count 9 on 2026-01-05",
		"\nconflict widget berlin  T-1 r1  settled by r2\n", "receipt 99 on 2026-01-01  STALE_CONFLICT")
	if strings.Contains(a.Stdout, "opening_count") {
		t.Error("the opening count agrees with itself")
	}
	one := x.want(0, "", "diagnostics -only current -limit 1")
	if one.has(t, "\nblocked widget berlin "); strings.Contains(one.Stdout, "gadget") {
		t.Error(one.Stdout)
	}
	_, place, _ := strings.Cut(strings.TrimSpace(one.Stdout), " -limit 1 -only current -after ")
	if !regexp.MustCompile(`^0/[0-9]+$`).MatchString(place) {
		t.Fatalf("the next page is %q in\n%s", place, one.Stdout)
	}
	one = x.want(0, "", "diagnostics -only current -limit 1 -after "+place)
	if one.has(t, "\nblocked gadget oslo "); strings.Contains(one.Stdout, "widget") || strings.Contains(one.Stdout, "more:") {
		t.Error(one.Stdout)
	}
	v := x.want(0, "", "diagnostics -o json").object(t)
	current, superseded := v["current"].([]any), v["superseded"].([]any)
	if len(current) != 2 || len(superseded) != 1 {
		t.Fatalf("%d current, %d superseded", len(current), len(superseded))
	}
	candidates := current[0].(map[string]any)["candidates"].([]any)
	want := []string{active2("T-1", 3, "2026-01-01", "receipt", 70), active2("T-1", 3, "2026-01-01", "receipt", 71)}
	for i, c := range candidates {
		if got := c.(map[string]any)["resolve"]; got != want[i] {
			t.Errorf("candidate %d resolves with %v, want %s", i, got, want[i])
		}
	}
	// What is printed, alone on its line, is what the loader takes.
	var printed []string
	for _, line := range strings.Split(a.Stdout, "\n") {
		if strings.HasPrefix(line, "{") {
			printed = append(printed, line)
		}
	}
	if len(printed) != 4 || printed[1] != want[1] {
		t.Fatalf("printed %q", printed)
	}
	x.load(printed[1], printed[2])
	x.eventually(0, "OK  lag 0; outbox 0; 0 blocked keys", "status")
	shown := x.want(0, "", "view show").Stdout
	for _, row := range []string{"balance  widget  berlin    2026-01-01  71", "balance  widget  berlin    2026-01-02  51", "balance  gadget  oslo      2026-01-05  9", "READY"} {
		if !strings.Contains(shown, row) {
			t.Errorf("no %q in\n%s", row, shown)
		}
	}
	x.want(0, "", "verify")
	a = x.want(0, "", "diagnostics -only superseded")
	a.has(t, "conflict widget berlin  T-1 r2  settled by r3", "conflict widget berlin  T-1 r1  settled by r3")
	if strings.Contains(a.Stdout, "load:") {
		t.Error("a settled conflict needs no record")
	}
	a = x.want(0, "", "diagnostics -only superseded -limit 1")
	a.has(t, "T-1 r2  settled", "\nmore: amends diagnostics -manifest "+x.Path("pipeline.json")+" -limit 1 -only superseded -after 0/0/5\n")
	a = x.want(0, "", "diagnostics -only superseded -limit 1 -after 0/0/5")
	if a.has(t, "T-1 r1  settled"); strings.Contains(a.Stdout, "more:") || strings.Contains(a.Stdout, "T-1 r2 ") {
		t.Error(a.Stdout)
	}
}

// active2 is active with the members in the order of S3.
func active2(txn string, revision int, day, kind string, quantity int) string {
	return fmt.Sprintf(`{"schema":1,"txn_id":"%s","revision":%d,"state":"active","item":"widget","location":"berlin","day":"%s","kind":"%s","quantity":%d}`, txn, revision, day, kind, quantity)
}

// A conflict that the view does not know yet, and one at the highest revision there is; identifiers that could deceive a terminal
// come out escaped, and the printed record still is that key's (SC37).
func TestSC37DiagnosticsUnpublishedAndHostile(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.run("source")
	const item = "a\x00\u202e<b>\U0001f4e6"
	x.load(assertion(item, "é", "T\x1b", 1, "2026-01-01", "receipt", 1), assertion(item, "é", "T\x1b", 1, "2026-01-01", "receipt", 2))
	highest := strings.Replace(active("T-9", 1, "2026-01-01", "receipt", 1), `"revision":1,`, `"revision":9223372036854775807,`, 1)
	x.load(highest, strings.Replace(highest, `"quantity":1,`, `"quantity":2,`, 1))
	a := x.eventually(0, "0 records rejected; 0 blocked keys; 2 records in conflict", "diagnostics")
	a.has(t, `conflict "a\x00\u202e<b>\U0001f4e6" é  "T\x1b" r1  current: no higher revision settles it`, `"item":"a\u0000\u202e<b>\ud83d\udce6","location":"\u00e9"`,
		"T-9 r9223372036854775807  current")
	if n := strings.Count(a.Stdout, "load:"); n != 2 {
		t.Errorf("%d resolving records, want two for the first conflict and none for the one at the highest revision\n%s", n, a.Stdout)
	}
	for _, r := range a.Stdout {
		if r == 0x202e || r == 0x1b || r == 0 {
			t.Fatalf("%q", a.Stdout)
		}
	}
	x.run("relay,view")
	x.eventually(4, "BLOCKED  2 keys blocked; lag 0; outbox 0", "status -max-lag 1h")
	for _, line := range strings.Split(a.Stdout, "\n") {
		if strings.HasPrefix(line, "{") {
			x.load(line)
			break
		}
	}
	x.eventually(4, "BLOCKED  1 key blocked; lag 0; outbox 0", "status -max-lag 1h")
}

// Diagnostics opens no connection to the broker, and refuses what it cannot mean.
func TestDiagnosticsNeedsNoBroker(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked <- struct{}{}
			c.Close()
		}
	}()
	x.Env["AMENDS_BROKERS"] = l.Addr().String()
	x.want(0, "", "diagnostics")
	x.want(0, "", "diagnostics -export raw")
	time.Sleep(100 * time.Millisecond)
	l.Close()
	if n := len(asked); n != 0 {
		t.Errorf("the broker was asked %d times", n)
	}
	for line, cause := range map[string]string{"-only all": "rejected, current or superseded", "-limit 0": "1..1000", "-limit 1001": "1..1000", "-after 0/1": "needs -only",
		"-only rejected -after 0/1/2": "not the end of a page", "-only superseded -after 0/1": "not the end of a page", "-only current -after 0/-1": "not the end of a page",
		"-only current -after 1024/0": "not the end of a page", "-export csv": "raw", "-export raw -o json": "leave out"} {
		x.want(2, cause, "diagnostics "+line)
	}
}
