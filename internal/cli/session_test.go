package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/kafkatest"
	"amends/internal/pgtest"
	"amends/internal/programtest"
)

type verified struct {
	Namespace string `json:"namespace"`
	Status    string `json:"status"`
	Mode      string `json:"mode"`
	Boundary  []struct {
		Partition int64 `json:"partition"`
		SourceEnd int64 `json:"source_end"`
		OutputEnd int64 `json:"output_end"`
	} `json:"boundary"`
	Schema        int   `json:"schema"`
	SourceRecords int64 `json:"source_records"`
	Rejected      int64 `json:"rejected"`
	Outputs       int64 `json:"outputs"`
	Messages      int64 `json:"messages"`
}

func verifyJSON(t *testing.T, text string) verified {
	t.Helper()
	var v verified
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// The worked session of the documentation, on a real broker and a real database, a process a line (SC01 to SC03, SC25, SC28).
func TestSC28WorkedSession(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	s := newShell(t, map[string]string{"AMENDS_DATABASE_URL": pgtest.New(t), "AMENDS_BROKERS": "127.0.0.1:1"})
	b := strings.Join(brokers, ",")
	source, output := kafkatest.Topic(t, brokers), kafkatest.Topic(t, brokers)
	s.Write("source.json", s.run(fmt.Sprintf("amendsctl source-create -brokers %s -namespace pipeline-demo-1 -topic %s", b, source)))
	pipeline := s.run(fmt.Sprintf("amendsctl output-create -brokers %s -manifest @source.json -topic %s", b, output))
	s.Write("pipeline.json", pipeline)
	if again := s.run(fmt.Sprintf("amendsctl output-create -brokers %s -manifest @source.json -topic %s", b, output)); again != pipeline {
		t.Errorf("a lost output was recovered as another manifest:\n%s\n%s", pipeline, again)
	}
	var running []*programtest.Process
	for _, role := range []string{"source", "source", "relay", "view"} {
		running = append(running, s.Start(fmt.Sprintf("amends -role %s -brokers %s -manifest @pipeline.json", role, b)))
	}
	for _, load := range []struct{ file, want string }{
		{"before.jsonl", "0 0 T-1 1\n0 1 T-2 1\n0 2 T-3 1\n"}, {"correction.jsonl", "0 3 T-1 2\n"}, {"cancel-last-day.jsonl", "0 4 T-3 2\n"},
	} {
		got := s.run(fmt.Sprintf("amendsctl source-load -brokers %s -manifest @pipeline.json -file %s", b, programtest.Fixture(t, load.file)))
		if got != load.want {
			t.Errorf("%s printed %q, want %q", load.file, got, load.want)
		}
	}
	text := s.run(fmt.Sprintf("amendsctl verify -brokers %s -manifest @pipeline.json -timeout %v", b, programtest.Deadline))
	if want := "PASS  5 source records, 11 messages; an independent recomputation agrees\n"; !strings.HasPrefix(text, want) {
		t.Errorf("verify printed %q", text)
	}
	v := verifyJSON(t, s.run(fmt.Sprintf("amendsctl verify -brokers %s -manifest @pipeline.json -deep -o json", b)))
	if v.Status != "PASS" || v.Boundary[0].SourceEnd != 5 || v.Boundary[0].OutputEnd != 11 || v.Boundary[1].SourceEnd != 0 || v.Messages != 11 ||
		v.SourceRecords != 5 || v.Outputs != 6 || v.Schema != 1 || v.Namespace != "pipeline-demo-1" || v.Mode != "quiesced" {
		t.Errorf("%+v", v)
	}
	checkGolden(t, s.run(fmt.Sprintf("amendsctl view-show -brokers %s -manifest @pipeline.json -o json", b)), "pipeline-demo-1")
	if shown := s.run(fmt.Sprintf("amendsctl view-show -brokers %s -manifest @pipeline.json", b)); !strings.Contains(shown, "70 -> 50 below 60") {
		t.Errorf("view-show printed %s", shown)
	}
	for _, p := range running {
		p.Stop(stopsWithin)
	}
}

// checkGolden compares view show with the hand-written golden file of package inspect, under another namespace.
func checkGolden(t *testing.T, got, namespace string) {
	t.Helper()
	want, err := os.ReadFile("../inspect/testdata/worked-example.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(want), `"namespace":"demo"`, `"namespace":"`+namespace+`"`), got); diff != "" {
		t.Error(diff)
	}
}

// The source role runs before any output exists; what it decided stays pending and is published after the binding (S9, SC41).
func TestSC41SourceRunsBeforeTheBinding(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Brokers(t)
	b := strings.Join(brokers, ",")
	s := newShell(t, map[string]string{"AMENDS_DATABASE_URL": pgtest.New(t), "AMENDS_BROKERS": b})
	source, output := kafkatest.Topic(t, brokers), kafkatest.Topic(t, brokers)
	s.Write("source.json", s.run("amendsctl source-create -namespace pending -topic "+source))
	worker := s.Start("amends -role source -manifest @source.json")
	for _, f := range []string{"before.jsonl", "correction.jsonl", "cancel-last-day.jsonl"} {
		s.run("amends source load -manifest @source.json -file " + programtest.Fixture(t, f))
	}
	s.Want(2, "not bound", "amends -role relay -manifest @source.json")
	s.Want(2, "not bound", "amends run -manifest @source.json")
	s.Want(2, "not bound", "amends verify -manifest @source.json")
	if shown := s.run("amends view show -manifest @source.json"); !strings.Contains(shown, "not bound") {
		t.Errorf("view show of an unbound manifest: %s", shown)
	}
	s.Write("pipeline.json", s.run("amends output create -manifest @source.json -topic "+output))
	rest := s.Start("amends run -manifest @pipeline.json -role relay,view")
	v := verifyJSON(t, s.run(fmt.Sprintf("amends verify -manifest @pipeline.json -deep -o json -timeout %v", programtest.Deadline)))
	if v.Status != "PASS" || v.Messages != 11 || v.Boundary[0].SourceEnd != 5 {
		t.Errorf("%+v", v)
	}
	// Loading again by the unbound manifest is duplicate evidence: nothing is published (SC04).
	s.run("amends source load -manifest @source.json -file " + programtest.Fixture(t, "before.jsonl"))
	v = verifyJSON(t, s.run("amends verify -manifest @pipeline.json -o json"))
	if v.Status != "PASS" || v.Messages != 11 || v.Boundary[0].SourceEnd != 8 {
		t.Errorf("%+v", v)
	}
	worker.Stop(stopsWithin)
	rest.Stop(stopsWithin)
}
