package operate_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// justNow is the first line after a verification: how long ago it was is the machine's affair, but less than a minute.
var justNow = regexp.MustCompile(`^OK  lag 0; outbox 0; 0 blocked keys; quarantine 0; verified PASS [0-9.]+ s ago$`)

// Every code of status for real: 0, 3 by a relay that does not run, 4 by a conflict, 5 by a tampered row that verify found, 11 by
// a record that no relay publishes. Each later one outweighs the earlier (design section 8, SC26 partly, C5).
func TestSC26C5StatusCodes(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	stopSource, stopRest := x.run("source"), x.run("relay,view")
	x.load(worked...)
	a := x.eventually(0, "OK  lag 0; outbox 0; 0 blocked keys; quarantine 0; never verified", "status")
	a.has(t, "PARTITION  FRONTIER  SOURCE END", "0          5         5           0    0       0", "up to date")
	x.want(0, "", "verify")
	a = x.want(0, "", "status")
	if !justNow.MatchString(a.First()) {
		t.Error(a.First())
	}
	// The worker goes on, nothing is published: after a second the outbox is older than a second.
	stopRest()
	x.load(active("T-4", 1, "2026-01-04", "receipt", 1))
	x.eventually(0, "OK  lag 0; outbox 1 output", "status -max-lag 1h")
	time.Sleep(time.Second)
	a = x.want(3, "status LATE: an output waits for the relay for ", "status -max-lag 1s")
	a.has(t, "LATE  an output waits", "nobody", "behind")
	one := x.want(3, "", "status -max-lag 1s -o json").object(t)
	if o := one["outbox"].(map[string]any); one["state"] != "LATE" || one["code"] != 3.0 || o["outputs"] != 1.0 || o["oldest_seconds"].(float64) < 1 {
		t.Errorf("%v", one)
	}
	// Nobody reads the source: its lag is records and the age of the first.
	stopSource()
	x.load(active("T-5", 1, "2026-01-05", "receipt", 1), active("T-6", 1, "2026-01-05", "receipt", 1))
	lag := x.want(0, "", "status -max-lag 1h -o json").object(t)["lag"].(map[string]any)
	if s, ok := lag["seconds"].(float64); lag["records"] != 2.0 || !ok || s < 0 || s > 300 {
		t.Errorf("%v", lag)
	}
	// A conflict blocks the key; it is left alone (C5).
	x.run("source,relay,view")
	x.load(active("T-1", 2, "2026-01-01", "receipt", 71))
	a = x.eventually(4, "BLOCKED  1 key blocked; lag 0", "status -max-lag 1ms")
	a.has(t, "widget       berlin    ", "0/8 T-1 r2", "AMBIGUOUS T-1 r2")
	x.load(active("T-1", 2, "2026-01-01", "receipt", 72), active("T-2", 1, "2026-01-02", "issue", 21))
	x.eventually(4, "BLOCKED  1 key blocked; lag 0; outbox 0", "status -max-lag 1h")
	blocked := x.eventuallyReasons(2)
	since := blocked["since"].(map[string]any)
	if record := since["record"].(map[string]any); record["partition"] != 0.0 || record["offset"] != 8.0 || record["txn_id"] != "T-1" || record["revision"] != 2.0 {
		t.Errorf("it began with %v, want 0/8 T-1 r2", record)
	}
	if cause := blocked["cause"].(map[string]any); cause["offset"] != 10.0 || cause["txn_id"] != "T-2" {
		t.Errorf("its reasons changed with %v, want 0/10 T-2 r1", cause)
	}
	if age, ok := since["age_seconds"].(float64); !ok || age < 0 || age > 600 {
		t.Errorf("age %v", since)
	}
	if none := x.want(4, "", "status -blocked 0 -o json").object(t); none["blocked_keys"] != 1.0 || len(none["blocked"].([]any)) != 0 {
		t.Errorf("%v", none)
	}
	// A tampered row that a verification found.
	x.exec("UPDATE amends.view_rows SET close = 51 WHERE close = 50 AND kind = 1 AND day = '2026-01-02'")
	x.want(5, "DRIFT", "verify -live")
	x.want(5, "status DRIFT: the last verification found 1 difference", "status").has(t, "DRIFT  the last verification found 1 difference; ", "verified DRIFT")
	// A record on the output topic that no relay writes.
	x.publish(outputTopic, 1, "k", "no envelope")
	a = x.eventually(11, "STOPPED  1 partition stopped; partition 1 at output offset 0: ", "status")
	a.has(t, "stopped: partition 1 at output offset 0: ", "1          0         0           0    0       0")
	if v := x.want(11, "status STOPPED", "status -o json").object(t)["partitions"].([]any)[1].(map[string]any)["stop"].(map[string]any); v["output_offset"] != 0.0 || v["reason"] == "" {
		t.Errorf("%v", v)
	}
}

// eventuallyReasons waits until the one blocked key has that many reasons.
func (x *space) eventuallyReasons(n int) map[string]any {
	x.t.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		blocked := x.call("status -o json").object(x.t)["blocked"].([]any)[0].(map[string]any)
		if len(blocked["reasons"].([]any)) == n {
			return blocked
		}
		if time.Since(began) > 90*time.Second {
			x.t.Fatalf("%v", blocked)
		}
	}
}

// What an audit keeps proving counts as the last verification, also where a cycle found nothing new and recorded none.
func TestStatusTellsOfTheAudit(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.run("source,relay,view")
	x.load(worked...)
	x.eventually(0, "OK  lag 0; outbox 0", "status")
	stop := x.run("audit")
	x.eventually(0, "OK  lag 0; outbox 0; 0 blocked keys; quarantine 0; audit PASS, equal ", "status")
	stop()
	x.sql("UPDATE amends.audit_state SET status = 'DRIFT', differences = 1, checked_at = clock_timestamp()")
	x.want(5, "status DRIFT: the last audit cycle found 2 differences", "status")
	x.sql("UPDATE amends.audit_state SET status = 'PASS', differences = 0, checked_at = clock_timestamp()")
	x.want(0, "", "status")
	// A deep verification may have seen what a short cycle does not look at.
	x.exec("UPDATE amends.journal SET quantity = 101 WHERE quantity = 100")
	x.want(5, "JOURNAL", "verify -deep")
	x.sql("UPDATE amends.audit_state SET checked_at = clock_timestamp(), verified_at = clock_timestamp()")
	x.want(5, "status DRIFT: the last verification found 1 difference", "status")
	// Nor does a verification that is not deep refute it, nor one that came to no result; another deep one does.
	x.want(0, "", "verify -live")
	x.want(5, "status DRIFT: the last verification found 1 difference", "status").has(t, "last verification: DRIFT  1 difference; the first: JOURNAL")
	x.sql("INSERT INTO amends.verifications (started_at, keys, outputs, differences, namespace_id, quiesced, deep, audit, status, boundary, detail) " +
		"SELECT now(), 0, 0, 0, namespace_id, true, true, false, 'INCOMPLETE', '[]', 'late' FROM amends.namespaces")
	x.want(5, "status DRIFT", "status")
	x.exec("UPDATE amends.journal SET quantity = 100 WHERE quantity = 101")
	x.want(0, "", "verify -live -deep")
	x.want(0, "", "status").has(t, "verified PASS")
}

// The database is enough: without the broker the lag is unknown, and the answer says so.
func TestStatusWithoutBroker(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.Env["AMENDS_BROKERS"] = "127.0.0.1:1"
	a := x.want(0, "", "status")
	if !strings.HasPrefix(a.First(), "OK  lag unknown; outbox 0; ") || !strings.HasSuffix(a.First(), "the source topic could not be asked") {
		t.Error(a.First())
	}
	a.has(t, "lag unknown: ", "127.0.0.1:1")
	v := x.want(0, "", "status -o json").object(t)
	if lag := v["lag"].(map[string]any); lag["records"] != nil || lag["seconds"] != nil || v["source_error"] == "" {
		t.Errorf("%v", v)
	}
}

// Wrong usage, a manifest that is not there and a database that is not named are 2 (design section 8).
func TestReadCommandsRefuse(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	for _, line := range []string{"status -max-lag -1s", "status -blocked 1001", "status -o yaml", "status extra"} {
		x.want(2, "", line)
	}
	delete(x.Env, "AMENDS_DATABASE_URL")
	for _, line := range []string{"status", "inspect", "diagnostics"} {
		x.want(2, "AMENDS_DATABASE_URL", line)
	}
	x.Env["AMENDS_MANIFEST"] = x.Path("none.json")
	x.want(2, "no such file", "status")
}

// A lease that ran out is held by nobody, whoever its last holder was.
func TestStatusOfAnExpiredLease(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.sql("UPDATE amends.leases SET holder = 'elsewhere', expires_at = clock_timestamp() + interval '1 hour' WHERE role = 'relay'")
	x.want(0, "", "status").has(t, "elsewhere      nobody")
	x.sql("UPDATE amends.leases SET expires_at = clock_timestamp() - interval '1 second' WHERE role = 'relay'")
	x.want(0, "", "status").has(t, "nobody         nobody")
}

// An open transaction keeps readers from what lies behind it: the lag is shown, and why it stays.
func TestSC23StatusOfAnOpenTransaction(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.run("source,relay,view")
	client, err := kgo.NewClient(kgo.SeedBrokers(x.brokers...), kgo.TransactionalID("open"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: sourceTopic, Partition: 0, Key: []byte(widgetKey), Value: []byte(worked[0])}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	a := x.want(0, "", "status")
	if !strings.HasPrefix(a.First(), "OK  lag 1 record, age unknown; ") {
		t.Error(a.First())
	}
	a.has(t, "an open transaction")
	if err := client.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	x.eventually(0, "OK  lag 0; outbox 0", "status")
}

// Another topic of the same name says nothing of this namespace's lag.
func TestSC24StatusOfARecreatedTopic(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	admin := x.admin()
	if _, err := admin.DeleteTopics(t.Context(), sourceTopic); err != nil {
		t.Fatal(err)
	}
	x.want(0, "", "status").has(t, "OK  lag unknown; ", "lag unknown: ", "no such topic")
	if _, err := admin.CreateTopic(t.Context(), 2, 1, nil, sourceTopic); err != nil {
		t.Fatal(err)
	}
	x.want(0, "", "status").has(t, "OK  lag unknown; ", "lag unknown: topic "+sourceTopic+": incarnation is kafka:")
}

// However often the reasons of a block change, its beginning is found: 99 conflicts in a row make 99 versions of the status (C5).
func TestC5SinceOfALongBlock(t *testing.T) {
	t.Parallel()
	x := newSpace(t)
	x.run("source,relay,view")
	x.load(active("A", 1, "2026-01-01", "receipt", 5))
	var lines []string
	for i := range 99 {
		for quantity := range 3 {
			lines = append(lines, active(fmt.Sprintf("T-%02d", 98-i), 1, "2026-01-02", "receipt", quantity+1))
		}
	}
	x.load(lines...)
	x.eventually(4, "BLOCKED  1 key blocked; lag 0; outbox 0; 1 blocked key", "status -max-lag 1h") // where the view is behind, it says so before the keys
	blocked := x.want(4, "", "status -max-lag 1h -o json").object(t)["blocked"].([]any)[0].(map[string]any)
	since := blocked["since"].(map[string]any)
	if record := since["record"].(map[string]any); record["offset"] != 2.0 || record["txn_id"] != "T-98" || since["longer"] != nil {
		t.Errorf("it began with %v, want 0/2 T-98", since)
	}
	if blocked["version"] != 100.0 || blocked["more"] != 83.0 || len(blocked["reasons"].([]any)) != 16 {
		t.Errorf("version %v, more %v, want 100 and 83", blocked["version"], blocked["more"])
	}
	x.want(0, "", "diagnostics -only current").has(t, "blocked widget berlin  AMBIGUOUS T-00 r1  the key for ", "and 83 ambiguous transactions of this key beyond those named")
	// Each is listed once, though two records of each were classified as conflicts, on whatever page the second lies.
	pages, at := 0, ""
	seen := map[string]int{}
	for ; pages < 10; pages++ {
		v := x.want(0, "", "diagnostics -only superseded -limit 25"+at+" -o json").object(t)
		for _, c := range v["superseded"].([]any) {
			seen[c.(map[string]any)["txn_id"].(string)]++
			if n := len(c.(map[string]any)["candidates"].([]any)); n != 3 {
				t.Errorf("%d candidates", n)
			}
		}
		next, more := v["superseded_next"].(string)
		if !more {
			break
		}
		at = " -after " + next
	}
	if len(seen) != 99 || seen["T-00"] != 1 || seen["T-98"] != 1 || pages != 7 {
		t.Errorf("%d conflicts on %d pages: %v", len(seen), pages+1, seen)
	}
}
