package acceptance

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/kafkatest"
	"amends/internal/pgtest"
	"amends/internal/programtest"
)

// The worked session of the documentation as it is written there, a process a line: the worked example's eleven envelopes
// byte for byte, PASS, source frontier 5, sequences 0 to 10. Two source processes share two partitions.
// Shows B9.
func TestSC01SC02SC03SC28WorkedSession(t *testing.T) {
	t.Parallel()
	s := &space{shell: newShell(t), name: "pipeline-demo-1", brokers: kafkatest.Brokers(t)}
	s.source, s.output = "amends-pipeline-demo-1-source", "amends-pipeline-demo-1-output"
	if os.Getenv("AMENDS_TEST_BROKERS") != "" { // brokers of others: topics of this test's own
		s.source, s.output = kafkatest.Topic(t, s.brokers), kafkatest.Topic(t, s.brokers)
	}
	s.Env["AMENDS_DATABASE_URL"] = pgtest.New(t)
	s.connect()
	b := strings.Join(s.brokers, ",")
	s.Write("source.json", s.run(fmt.Sprintf("amendsctl source-create -brokers %s -namespace pipeline-demo-1 -topic %s", b, s.source)))
	s.Write("pipeline.json", s.run(fmt.Sprintf("amendsctl output-create -brokers %s -manifest source.json -topic %s", b, s.output)))
	var running []*programtest.Process
	for _, role := range []string{"source", "source", "relay", "view"} {
		running = append(running, s.Start(fmt.Sprintf("amends -role %s -brokers %s -manifest pipeline.json", role, b)))
	}
	for _, load := range []struct{ file, want string }{
		{"before.jsonl", "0 0 T-1 1\n0 1 T-2 1\n0 2 T-3 1\n"}, {"correction.jsonl", "0 3 T-1 2\n"}, {"cancel-last-day.jsonl", "0 4 T-3 2\n"},
	} {
		if got := s.run(fmt.Sprintf("amendsctl source-load -brokers %s -manifest pipeline.json -file %s", b, programtest.Fixture(t, load.file))); got != load.want {
			t.Errorf("%s printed %q, want %q", load.file, got, load.want)
		}
	}
	if shown := s.run(fmt.Sprintf("amendsctl view-show -brokers %s -manifest pipeline.json", b)); shown == "" {
		t.Error("view-show printed nothing")
	}
	if text := s.run(fmt.Sprintf("amendsctl verify -brokers %s -manifest pipeline.json -timeout %v", b, programtest.Deadline)); !strings.HasPrefix(text, "PASS") {
		t.Errorf("verify printed %q", text)
	}
	s.Env["AMENDS_BROKERS"] = b // the default of -brokers
	v := s.verify(0)
	if v.Status != "PASS" || v.Schema != 1 || v.Mode != "quiesced" || v.Namespace != s.name || v.SourceRecords != 5 || v.Rejected != 0 ||
		v.Boundary[0].SourceEnd != 5 || v.Boundary[0].OutputEnd != 11 || v.Boundary[1].SourceEnd != 0 || v.Boundary[1].OutputEnd != 0 {
		t.Errorf("%+v", v)
	}
	if d := cmp.Diff(golden(t, s.name, "widget", "berlin", 0), s.published(0)); d != "" {
		t.Errorf("published (-by hand +topic):\n%s", d)
	}
	checkWorkedExample(s)
	for _, p := range running {
		p.Stop(programtest.Deadline)
	}
}

// checkWorkedExample compares partition 0's rows with the end of the worked example.
func checkWorkedExample(s *space) {
	s.t.Helper()
	if d := cmp.Diff([]string{"5|11"}, s.query("SELECT frontier, next_sequence FROM amends.partitions WHERE partition = 0")); d != "" {
		s.t.Error(d)
	}
	want := []string{"2026-01-01|1|2|true|70|NULL|NULL", "2026-01-02|1|2|true|50|NULL|NULL", "2026-01-02|2|1|true|50|70|60",
		"2026-01-03|1|3|false|NULL|NULL|NULL", "2026-01-03|2|2|false|NULL|NULL|NULL", "infinity|3|1|true|NULL|NULL|NULL"}
	got := s.query("SELECT day, kind, version, present, close, previous, threshold FROM amends.view_rows WHERE partition = 0 ORDER BY day, kind")
	if d := cmp.Diff(want, got); d != "" {
		s.t.Errorf("view rows (-by hand +database):\n%s", d)
	}
}

// The source role runs on the unbound manifest before any output exists. What it decided stays pending; after the binding
// everything pending is published, each sequence once.
func TestSC41PendingDecisionsArePublishedAfterTheBinding(t *testing.T) {
	t.Parallel()
	s := newUnbound(t, "")
	worker := s.Start("amends -role source -manifest source.json")
	for _, f := range []string{"before.jsonl", "correction.jsonl", "cancel-last-day.jsonl"} {
		s.run("amendsctl source-load -manifest source.json -file " + programtest.Fixture(t, f))
	}
	s.frontier(0, 5)
	for _, line := range []string{"amends -role relay -manifest source.json", "amends -role view -manifest source.json", "amendsctl verify -manifest source.json"} {
		s.Must(2, "not bound", line)
	}
	s.bind()
	bound := s.query("SELECT term, next_sequence, output_offset FROM amends.relay_progress UNION ALL SELECT term, next_sequence, output_offset FROM amends.view_progress")
	if d := cmp.Diff([]string{"0|0|0", "0|0|0", "0|0|0", "0|0|0"}, bound); d != "" {
		t.Errorf("positions after the binding: %s", d)
	}
	relay, view := s.Start("amends -role relay -manifest pipeline.json"), s.Start("amends -role view -manifest pipeline.json")
	if v := s.verify(0); v.Boundary[0].SourceEnd != 5 || v.Boundary[0].OutputEnd != 11 {
		t.Errorf("%+v", v)
	}
	if d := cmp.Diff(golden(t, s.name, "widget", "berlin", 0), s.published(0)); d != "" {
		t.Errorf("published (-by hand +topic):\n%s", d)
	}
	checkWorkedExample(s)
	worker.Stop(programtest.Deadline)
	relay.Stop(programtest.Deadline)
	view.Stop(programtest.Deadline)
}

// Two workers, a key on each partition, all three stages: the worked example twice, side by side.
func TestSC28KeysOnBothPartitions(t *testing.T) {
	t.Parallel()
	s := newSpace(t, twoKeys)
	first, second := s.Start("amends -role source -manifest pipeline.json"), s.Start("amends -role source -manifest pipeline.json")
	rest := s.Start("amends run -manifest pipeline.json -role relay,view")
	b0, c0, l0 := example("widget", "berlin")
	b1, c1, l1 := example("gadget", "paris")
	for _, stage := range [][]string{append(b0, b1...), append(c1, c0...), append(l0, l1...)} {
		s.load(stage...)
		if v := s.verify(0); v.Status != "PASS" {
			t.Fatalf("%+v", v)
		}
	}
	if d := cmp.Diff(golden(t, s.name, "widget", "berlin", 0), s.published(0)); d != "" {
		t.Errorf("partition 0 (-by hand +topic):\n%s", d)
	}
	if d := cmp.Diff(golden(t, s.name, "gadget", "paris", 1), s.published(1)); d != "" {
		t.Errorf("partition 1 (-by hand +topic):\n%s", d)
	}
	if d := cmp.Diff([]string{"0|5|11", "1|5|11"}, s.query("SELECT partition, frontier, next_sequence FROM amends.partitions ORDER BY partition")); d != "" {
		t.Error(d)
	}
	first.Stop(programtest.Deadline)
	second.Stop(programtest.Deadline)
	rest.Stop(programtest.Deadline)
}
