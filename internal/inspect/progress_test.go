package inspect_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"amends/internal/health"
	"amends/internal/inspect"
	"amends/internal/ledger"
)

// sampled is a namespace with two partitions, of which the first has a history and the second was never measured.
func sampled(item, holder, reason string) *health.Progress {
	end, records, quarantined := int64(1240), int64(40), int64(3)
	seconds := 12.5
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	var recent []health.Sample
	for i := range int64(32) {
		recent = append(recent, health.Sample{Records: 1 + i%7, Accepted: 1 + i%7, Rewind: i * 3 % 50, Refolded: i * i % 90, Changed: i * i % 80, Withdrawn: i % 2, Lock: 2_000 * i, PreCommit: 900_000 + i*i*10_000})
	}
	total := health.Sample{Records: 1200, Accepted: 1197, Rejected: 3, Rewind: 48, Refolded: 8123, Changed: 7011, Withdrawn: 17, Lock: 123_456_789, PreCommit: 3_200_000_000}
	status := ledger.Status{Blocked: true, Reasons: []ledger.Reason{{Code: ledger.Ambiguous, TxnID: item, Revision: 2}}}
	cause := health.Cause{TxnID: item, Offset: 7, Revision: 2}
	return &health.Progress{At: at, Namespace: "demo", SourceTopic: "demo-source", OutputTopic: "demo-output", Lag: health.Lag{Records: &records, Seconds: &seconds},
		Outbox: health.Waiting{Outputs: 12, Seconds: 3}, View: health.Waiting{Outputs: 5, Seconds: 0.4}, BlockedKeys: 1, Quarantined: &quarantined,
		Verification: &health.Verification{Finished: at.Add(-time.Hour), Status: "DRIFT", Detail: reason, AgeSeconds: 3600, Differences: 1},
		Blocked:      []health.Blocked{{Item: item, Location: item, Status: status, Cause: cause, Version: 2, Since: &health.Since{At: at.Add(-3 * time.Hour), AgeSeconds: 10_800, Record: cause}}},
		Partitions: []health.Partition{
			{End: &end, Lag: health.Lag{Records: &records, Seconds: &seconds}, Frontier: 1200, Sequence: 7011, Epoch: 3, Outbox: health.Waiting{Outputs: 12, Seconds: 3},
				Unapplied: health.Waiting{Outputs: 5, Seconds: 0.4}, Relay: &health.Delivery{Holder: holder, Sequence: 6999, Output: 6999, Term: 2}, View: &health.Delivery{Holder: "host/2", Sequence: 6994, Output: 6994, Term: 1},
				Measurements: &health.Measurements{Commits: 400, Complete: true, Total: &total, Last: &recent[31], Recent: recent}},
			{Partition: 1, Frontier: 9, Stop: &health.Stop{Reason: reason, Offset: 4}, View: &health.Delivery{}, Relay: &health.Delivery{}, Measurements: &health.Measurements{Recent: []health.Sample{}}},
		}}
}

func pageOf(t *testing.T, p *health.Progress) string {
	t.Helper()
	var out bytes.Buffer
	if err := inspect.ProgressPage(&out, p); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// structure lists every element with its attributes of a page, which is XML too.
func structure(t *testing.T, page string) []string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Entity = xml.HTMLEntity
	var all []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			line := e.Name.Local
			for _, a := range e.Attr {
				line += " " + a.Name.Local
			}
			all = append(all, line)
		}
	}
}

// SC37: no identifier, holder or reason adds an element or an attribute to the page, and none is lost.
func TestSC37ProgressPageIsSafe(t *testing.T) {
	t.Parallel()
	plain := structure(t, pageOf(t, sampled("widget", "host/1", "bytes")))
	for _, hostile := range []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='x`, "</title></style><b>", "{{.}}", "]]>", "<!--", "&lt;b&gt;", "a\x00b\u202ec", "javascript:x"} {
		page := pageOf(t, sampled(hostile, hostile, hostile))
		if diff := cmp.Diff(plain, structure(t, page)); diff != "" {
			t.Errorf("%q changes the page (-plain +hostile):\n%s", hostile, diff)
		}
	}
	// item, location, record, reason, holder, why it stopped, what the verification found
	if n := strings.Count(pageOf(t, sampled("<i>", "<i>", "<i>")), "&lt;i&gt;"); n != 7 {
		t.Errorf("it is shown %d times, want 7", n)
	}
}

// The page refers to nothing outside itself, runs nothing, and says on its first screen what it is not.
func TestProgressPageIsStatic(t *testing.T) {
	t.Parallel()
	page := pageOf(t, sampled("widget", "host/1", "bytes"))
	if found := regexp.MustCompile(`(?i)<script|\son[a-z]+=|\bhref=|\bsrc=|url\(|@import|http:|https:`).FindAllString(page, -1); found != nil {
		t.Errorf("the page holds %q", found)
	}
	body := page[strings.Index(page, "<body>"):]
	if at := strings.Index(body, "not a verification"); at < 0 || at > 600 {
		t.Errorf("the first screen does not say what the page is not (%d)", at)
	}
	p := sampled("widget", "host/1", "bytes")
	p.BlockedKeys, p.Blocked[0].Since = 901, nil
	if rest := pageOf(t, p); !strings.Contains(rest, "and 900 more") || !strings.Contains(rest, ">0/7 widget r2<") || strings.Contains(page, " more: ") {
		t.Error("blocked keys beyond those listed, or whose beginning is not known")
	}
	if i, j := strings.Count(page, "<figure>"), strings.Count(page, "the same as a table"); i != 6 || j != 1 {
		t.Errorf("%d charts, %d tables of them", i, j)
	}
	if dir := os.Getenv("AMENDS_TEST_PAGE"); dir != "" {
		if err := os.WriteFile(dir, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// What was not measured is unknown in every form, never zero (issue: NULL before the first measurement).
func TestSC42UnmeasuredWorkIsUnknown(t *testing.T) {
	t.Parallel()
	p := sampled("widget", "host/1", "bytes")
	p.Partitions = p.Partitions[1:]
	if n := strings.Count(pageOf(t, p), `<td class="n">unknown</td>`); n != 18 {
		t.Errorf("%d cells are unknown, want the source end, the commits and 16", n)
	}
	var text, object bytes.Buffer
	if err := inspect.ProgressText(&text, p); err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile(`(?m)^1 +all +unknown( +unknown){8}$`)
	last := regexp.MustCompile(`(?m)^1 +last( +unknown){8}$`)
	if !all.MatchString(text.String()) || !last.MatchString(text.String()) || !strings.Contains(text.String(), "what was done until now is unknown") {
		t.Error(text.String())
	}
	if err := inspect.ProgressJSON(&object, p); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"scope": "live snapshot, not a verification"`, `"last": null`, `"total": null`} {
		if !strings.Contains(object.String(), want) {
			t.Errorf("no %s in %s", want, object.String())
		}
	}
}

// However many partitions there are, charts are drawn of 64, and the tables hold all.
func TestProgressPageOfManyPartitions(t *testing.T) {
	t.Parallel()
	p := sampled("widget", "host/1", "bytes")
	one := p.Partitions[0]
	p.Partitions = nil
	for i := range int32(130) {
		one.Partition = i
		p.Partitions = append(p.Partitions, one)
	}
	page := pageOf(t, p)
	if n := strings.Count(page, "<figure>"); n != 6*64 || !strings.Contains(page, "66 partitions without are in the tables") {
		t.Errorf("%d charts", n)
	}
	if rows := strings.Count(page, "<tr>"); rows < 130*(1+2+32) {
		t.Errorf("%d rows", rows)
	}
	if n := strings.Count(page, `<details open="open">`); n != 66 {
		t.Error("the tables without charts are not open")
	}
}
