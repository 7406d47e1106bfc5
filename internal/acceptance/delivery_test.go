package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/programtest"
)

const (
	widgetKey = `{"item":"widget","location":"berlin"}`
	gadgetKey = `{"item":"gadget","location":"paris"}`
)

// played is a namespace of two keys whose worked example has passed, its roles in a process each.
func played(t *testing.T) (s *space, view *programtest.Process) {
	t.Helper()
	s = newSpace(t, twoKeys)
	s.Start("amends run -manifest pipeline.json -role source,relay")
	view = s.Start("amends -role view -manifest pipeline.json")
	before, correction, last := example("widget", "berlin")
	s.load(append(append(before, correction...), last...)...)
	s.verify(0)
	return s, view
}

// envelope sends one output record as somebody else would.
func (s *space) envelope(partition int32, key, value string) {
	s.t.Helper()
	s.send(s.output, partition, &kgo.Record{Key: []byte(key), Value: []byte(value)})
}

// everyRow is what the view shows of a namespace; positions stand apart.
func (s *space) everyRow() []string {
	s.t.Helper()
	return s.query("SELECT partition, day, kind, version, sequence, present, close, previous, threshold, status, cause_offset, cause_txn_id, cause_revision, digest FROM amends.view_rows ORDER BY 1, 2, 3")
}

// The same envelope published again changes nothing and the frontier passes it (SC17); so does an older version after a
// tombstone, while the view was away (SC20).
func TestSC17SC20RepetitionsAndOlderVersions(t *testing.T) {
	t.Parallel()
	s, view := played(t)
	want, e := s.everyRow(), golden(t, s.name, "widget", "berlin", 0)
	s.envelope(0, widgetKey, e[10])
	s.envelope(0, widgetKey, e[1])
	s.viewed(0, 13)
	if d := cmp.Diff(want, s.everyRow()); d != "" {
		t.Errorf("SC17: repetitions changed rows:\n%s", d)
	}
	view.Stop(programtest.Deadline)
	s.envelope(0, widgetKey, e[3]) // 01-03 at version 1; its row is the tombstone of version 3
	s.envelope(0, widgetKey, e[8]) // and at version 2
	s.Start("amends -role view -manifest pipeline.json")
	s.viewed(0, 15)
	if d := cmp.Diff(want, s.everyRow()); d != "" {
		t.Errorf("SC20: an older version changed rows:\n%s", d)
	}
	s.load(widget("T-4", 1, "receipt", 5, 2)) // work goes on behind the repetitions
	s.verify(0)
	if d := cmp.Diff([]string{"2026-01-02|55|3"}, s.query("SELECT day, close, version FROM amends.view_rows WHERE kind = 1 AND day = '2026-01-02'")); d != "" {
		t.Error(d)
	}
}

// An equal version with other content stops its partition for ever with the exact bytes; the other partition goes on; a
// restart keeps the stop; when all partitions are stopped the role ends with 11, and again when it is started again.
func TestSC21EqualVersionOtherContent(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"SC21 other payload": {`"present":false,"payload":null`, `"present":true,"payload":{"close":20}`},
		"SC21 other cause":   {`"txn_id":"T-3"`, `"txn_id":"T-2"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, view := played(t)
			rows := s.everyRow()
			bad := strings.Replace(golden(t, s.name, "widget", "berlin", 0)[10], change[0], change[1], 1)
			s.envelope(0, widgetKey, bad)
			programtest.Await(t, "the stop of partition 0", func() bool { return s.one("SELECT stopped FROM amends.view_progress WHERE partition = 0") == "true" })
			kept := s.query("SELECT partition, output_offset, convert_from(key, 'UTF8'), convert_from(value, 'UTF8') FROM amends.protocol_errors")
			if d := cmp.Diff([]string{"0|11|" + widgetKey + "|" + bad}, kept); d != "" {
				t.Errorf("kept bytes:\n%s", d)
			}
			s.load(gadget("G-1", 1, "receipt", 9, 1), widget("T-4", 1, "receipt", 1, 4))
			s.viewed(1, 2)
			view.Stop(programtest.Deadline)
			view = s.Start("amends -role view -manifest pipeline.json")
			s.load(gadget("G-2", 1, "receipt", 1, 2))
			s.viewed(1, 3)
			if d := cmp.Diff(rows, s.everyRow()[:len(rows)]); d != "" {
				t.Errorf("rows of the stopped partition:\n%s", d)
			}
			if at := s.one("SELECT output_offset, next_sequence, stopped FROM amends.view_progress WHERE partition = 0"); at != "11|11|true" {
				t.Errorf("position of the stopped partition: %s", at)
			}
			if v := s.verify(3); v.Status != "INCOMPLETE" || !bytes.Contains(v.Reasons, []byte("STOPPED")) {
				t.Errorf("%+v %s", v, v.Reasons)
			}
			s.showsError(bad)
			s.envelope(1, gadgetKey, `{"not":"an envelope"}`)
			view.Ends(11, "stopped")
			s.Must(11, "stopped", "amends -role view -manifest pipeline.json")
		})
	}
}

// showsError checks that view show ends with 0 and shows the violation with its exact bytes.
func (s *space) showsError(value string) {
	s.t.Helper()
	var shown struct {
		Errors []struct {
			Reason    string
			Key       []byte
			Value     []byte
			Partition int
			Offset    int64
		}
	}
	if err := json.Unmarshal([]byte(s.run("amendsctl view-show -manifest pipeline.json -o json")), &shown); err != nil {
		s.t.Fatal(err)
	}
	if len(shown.Errors) != 1 || shown.Errors[0].Partition != 0 || shown.Errors[0].Offset != 11 || string(shown.Errors[0].Key) != widgetKey ||
		string(shown.Errors[0].Value) != value || shown.Errors[0].Reason == "" {
		s.t.Errorf("view show says %+v", shown.Errors)
	}
}

// A cancellation before the outbox was drained: both versions are published in order and the view ends withdrawn (C4). One
// page with version 1 present, 2 withdrawn, 3 present ends present at version 3 (C36). A withdrawal is present false with
// payload null, in the topic, in the columns and on paper (C33).
func TestC4C33C36VersionsWhileNobodyPublishes(t *testing.T) {
	t.Parallel()
	s := newSpace(t, twoKeys)
	s.Start("amends -role source -manifest pipeline.json")
	s.load(widget("A", 1, "receipt", 100, 1), cancelled("widget", "berlin", "A", 2),
		gadget("B", 1, "receipt", 80, 1), cancelled("gadget", "paris", "B", 2), gadget("B", 3, "receipt", 90, 1))
	s.frontier(0, 2)
	s.frontier(1, 3)
	if got := s.published(0); len(got) != 0 {
		t.Fatalf("published without a relay: %v", got)
	}
	s.Start("amends run -manifest pipeline.json -role relay")
	programtest.Await(t, "everything published", func() bool { return s.one("SELECT sum(next_sequence) FROM amends.relay_progress") == "7" })
	s.Start("amends -role view -manifest pipeline.json")
	s.verify(0)
	head := `{"schema":1,"namespace":"` + s.name + `","sequence":%d,"output":["balance",%s,"2026-01-01"],"version":%d,"present":%s,"cause":{"partition":%d,"offset":%d,"txn_id":"%s","revision":%d},"repair":{"index":0,"count":%d}}`
	wantA := fmt.Sprintf(head, 2, `"widget","berlin"`, 2, `false,"payload":null`, 0, 1, "A", 2, 1)
	wantB := fmt.Sprintf(head, 3, `"gadget","paris"`, 3, `true,"payload":{"close":90}`, 1, 2, "B", 3, 1)
	if got := s.published(0); len(got) != 3 || got[2] != wantA {
		t.Errorf("C4, C33: published %q, the last should be %s", got, wantA)
	}
	if got := s.published(1); len(got) != 4 || got[3] != wantB {
		t.Errorf("C36: published %q, the last should be %s", got, wantB)
	}
	rows := s.query("SELECT partition, kind, version, present, close, previous, threshold, status IS NULL AS s FROM amends.view_rows WHERE kind < 3 ORDER BY 1, 2")
	if d := cmp.Diff([]string{"0|1|2|false|NULL|NULL|NULL|true", "1|1|3|true|90|NULL|NULL|true"}, rows); d != "" {
		t.Error(d)
	}
}

// Cancelled without a trace: the only transaction of a day takes its row with it, and no table and no page keeps a close of
// that day (C13). A cancelled record counts nowhere and both records stay in the history (C25).
// Shows B9.
func TestC13C25NothingGhostlyIsLeft(t *testing.T) {
	t.Parallel()
	s := newSpace(t, "")
	s.roles()
	s.load(widget("R", 1, "receipt", 10, 1), widget("I", 1, "issue", 1, 9), cancelled("widget", "berlin", "I", 2))
	s.verify(0)
	if d := cmp.Diff([]string{"2026-01-09|1|2|false|NULL"}, s.query("SELECT day, kind, version, present, close FROM amends.view_rows WHERE day = '2026-01-09'")); d != "" {
		t.Error(d)
	}
	for _, l := range strings.Split(s.run("amendsctl view-show -manifest pipeline.json"), "\n") {
		if strings.Contains(l, "2026-01-09") && !strings.Contains(l, "withdrawn") {
			t.Errorf("view-show still says %q", l)
		}
	}
	if got := s.query("SELECT day FROM amends.balances WHERE present UNION SELECT day FROM amends.alerts WHERE present"); len(got) != 1 || got[0] != "2026-01-01" {
		t.Errorf("the views of people show %v", got)
	}
	var shown struct {
		Balances []struct{ Day string }
		Alerts   []struct{ Day string }
	}
	if err := json.Unmarshal([]byte(s.run("amendsctl view-show -manifest pipeline.json -o json")), &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Balances) != 1 || shown.Balances[0].Day != "2026-01-01" || len(shown.Alerts) != 0 {
		t.Errorf("shown %+v", shown)
	}
	s.load(widget("J", 1, "issue", 2, 10)) // its base is the close of day 1
	s.verify(0)
	if got := s.one("SELECT close FROM amends.view_rows WHERE kind = 1 AND day = '2026-01-10'"); got != "8" {
		t.Errorf("close of day 10: %s", got)
	}
	history := s.query("SELECT source_offset, revision, state, quantity FROM amends.journal WHERE txn_id = 'I' ORDER BY 1")
	if d := cmp.Diff([]string{"1|1|1|1", "2|2|2|NULL"}, history); d != "" {
		t.Errorf("C25: history:\n%s", d)
	}
}

// After many cancellations tombstones are no drift (C16).
func TestC16TombstonesAreNoDrift(t *testing.T) {
	t.Parallel()
	s := newSpace(t, "")
	s.roles()
	var values []string
	for i := range 150 {
		values = append(values, widget(fmt.Sprint("T-", i), 1, "receipt", int64(i+1), i%25+1))
	}
	for i := range 150 {
		values = append(values, cancelled("widget", "berlin", fmt.Sprint("T-", i), 2))
	}
	s.load(values...)
	if v := s.verify(0); v.SourceRecords != 300 {
		t.Errorf("%+v", v)
	}
	if got := s.one("SELECT count(*) FILTER (WHERE present), count(*) FILTER (WHERE NOT present) FROM amends.view_rows WHERE kind = 1"); got != "0|25" {
		t.Errorf("balances present and withdrawn: %s", got)
	}
}
