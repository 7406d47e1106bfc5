package acceptance

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"amends/internal/pgtest"
	"amends/internal/programtest"
)

// refused checks a command that must end with a code, one line that names the cause, and nothing on stdout.
func (s *shell) refused(code int, cause, line string) {
	s.t.Helper()
	a := s.Run(line)
	if a.Code != code || !strings.Contains(a.Cause(), cause) || strings.Count(strings.TrimSpace(a.Stderr), "\n") > 0 || a.Stdout != "" {
		s.t.Errorf("%s: code %d, want %d with one line that says %q\n%s%s", line, a.Code, code, cause, a.Stdout, a.Stderr)
	}
}

// Starts that cannot be right get one clear message and the right exit code, before anything is read or written.
func TestRefusedStarts(t *testing.T) {
	t.Parallel()
	s := newSpace(t, "")
	bound := readFile(t, s.Dir, "pipeline.json")
	s.Write("cut.json", bound[:len(bound)/2])
	s.Write("unknown.json", strings.Replace(bound, `"namespace"`, `"name_space"`, 1))
	load := "amendsctl source-load -file " + programtest.Fixture(t, "before.jsonl")
	for _, line := range []string{"amends -role source", "amends -role relay", "amends -role view", load, "amendsctl verify", "amendsctl view-show"} {
		s.refused(2, "cut.json", line+" -manifest cut.json")
		s.refused(2, "name_space", line+" -manifest unknown.json")
		s.refused(2, "no such file", line+" -manifest none.json")
		s.refused(2, "no manifest", line)
	}
	for _, line := range []string{"amends -role relay", "amends -role view", "amends run", "amendsctl verify"} {
		s.refused(2, "not bound", line+" -manifest source.json")
	}
	address := s.Env["AMENDS_DATABASE_URL"]
	delete(s.Env, "AMENDS_DATABASE_URL")
	for _, line := range []string{"amends -role source", "amends -role relay", "amends -role view", load, "amendsctl verify", "amendsctl view-show", "amendsctl output-create -topic x"} {
		s.refused(2, "AMENDS_DATABASE_URL", line+" -manifest pipeline.json")
	}
	s.Env["AMENDS_DATABASE_URL"] = pgtest.New(t) // a wrong database: no schema, then no such namespace
	for _, line := range []string{"amendsctl verify", "amendsctl view-show"} {
		s.refused(13, "no amends schema", line+" -manifest pipeline.json")
	}
	s.run("amendsctl migrate-up")
	for _, line := range []string{"amendsctl verify", "amendsctl view-show"} {
		s.refused(13, "no such namespace", line+" -manifest pipeline.json")
	}
	for _, role := range []string{"relay", "view"} { // a role initialises the namespace, and finds it unbound
		s.refused(13, "binding", "amends -role "+role+" -manifest pipeline.json")
	}
	s.Env["AMENDS_DATABASE_URL"] = address[:strings.LastIndexByte(address, '/')] + "/amends_no_such_database"
	s.refused(1, "does not exist", "amends -role source -max-wait 30s -manifest pipeline.json") // at once: it is no outage
}

// A topic that is not the namespace's any more is refused by its own message, at the start and while running, and verify
// says UNAVAILABLE.
func TestTopicsThatChanged(t *testing.T) {
	t.Parallel()
	alter := func(name, value string) func(*space, string) error {
		return func(s *space, topic string) error {
			answers, err := s.admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, topic)
			if err == nil {
				err = answers[0].Err
			}
			return err
		}
	}
	for _, c := range []struct {
		name, cause string
		change      func(s *space, topic string) error
	}{
		{"finite retention.ms", "retention.ms", alter("retention.ms", "100000000")},
		{"finite retention.bytes", "retention.bytes", alter("retention.bytes", "100000000")},
		{"recreated", "incarnation", func(s *space, topic string) error {
			_, err := s.admin.DeleteTopic(t.Context(), topic)
			if err == nil {
				forever := "-1"
				programtest.Await(t, "the topic made again", func() bool {
					_, err = s.admin.CreateTopic(t.Context(), 2, 1, map[string]*string{"retention.ms": &forever, "retention.bytes": &forever}, topic)
					return err == nil
				})
			}
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t, "")
			running := s.Start("amends -role source -manifest pipeline.json")
			s.load(widget("T-1", 1, "receipt", 1, 1))
			s.frontier(0, 1)
			if err := c.change(s, s.source); err != nil {
				t.Fatal(err)
			}
			// A role that runs may be told first that the topic of this name does not reach to where it reads.
			if a := running.Wait(); !a.Is(11, c.cause) && (c.name != "recreated" || !a.Is(11, "is not in the log")) {
				t.Errorf("%s: code %d, want 11 with %q\n%s", running.Line, a.Code, c.cause, a.Stderr)
			}
			s.refused(11, c.cause, "amends -role source -manifest pipeline.json")
			s.refused(11, c.cause, "amendsctl source-load -manifest source.json -file "+programtest.Fixture(t, "before.jsonl"))
			s.Must(6, "UNAVAILABLE", "amendsctl verify -manifest pipeline.json")
			other := newSpace(t, "")
			if err := c.change(other, other.output); err != nil {
				t.Fatal(err)
			}
			for _, role := range []string{"relay", "view"} {
				other.refused(11, c.cause, "amends -role "+role+" -manifest pipeline.json")
			}
		})
	}
}

// A port in use is named.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	pgtest.Installed(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	s := newShell(t)
	s.Must(1, fmt.Sprint(port), fmt.Sprintf("amends dev -dir %s/stack -broker-port %d", stackParent(t), port))
	s.Must(1, fmt.Sprint(port), fmt.Sprintf("amends dev -dir %s/stack -postgres-port %d", stackParent(t), port))
}

// Epochs, sequences and versions at 2^63-1 end the role with 1 and change nothing (SC43).
func TestSC43Exhaustion(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"SC43 epoch":    "UPDATE amends.partitions SET epoch = 9223372036854775807 WHERE partition = 0",
		"SC43 sequence": "UPDATE amends.partitions SET next_sequence = 9223372036854775807 WHERE partition = 0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newUnbound(t, "")
			s.load(widget("T-1", 1, "receipt", 1, 1))
			s.exec(sql)
			before := s.query("SELECT partition, frontier, next_sequence, commits FROM amends.partitions ORDER BY 1")
			s.Must(1, "exhausted", "amends -role source -manifest source.json")
			after := s.query("SELECT partition, frontier, next_sequence, commits FROM amends.partitions ORDER BY 1")
			if fmt.Sprint(before) != fmt.Sprint(after) {
				t.Errorf("%v became %v", before, after)
			}
			if got := s.query("SELECT source_offset FROM amends.journal"); len(got) != 0 {
				t.Errorf("decided: %v", got)
			}
		})
	}
}
