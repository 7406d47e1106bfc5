package query_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"amends/internal/kafkatest"
	"amends/internal/pgtest"
	"amends/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m) }

// space is a bound namespace on a real broker and a real database, with its roles running in this process.
type space struct {
	*programtest.Shell
	t *testing.T
}

// newSpace creates and binds a namespace. config is the file of source create, "" for the worked example's.
func newSpace(t *testing.T, config string) *space {
	t.Helper()
	s := newBare(t)
	s.Env["AMENDS_DATABASE_URL"], s.Env["AMENDS_BROKERS"] = pgtest.New(t), strings.Join(kafkatest.Embedded(t), ",")
	create := "source create -namespace demo -topic demo-source"
	if config != "" {
		create += " -config " + s.Write("config.json", config)
	}
	s.Write("source.json", s.run(create))
	s.Env["AMENDS_MANIFEST"] = s.Write("pipeline.json", s.run("output create -manifest @source.json -topic demo-output"))
	return s
}

func newBare(t *testing.T) *space { t.Helper(); return &space{Shell: programtest.New(t), t: t} }

// start runs the roles until the test ends.
func (s *space) start(roles string) { s.t.Helper(); s.Roles("amends run -role " + roles) }

// load loads values and waits until they are in the view and the relay has their receipts, which a verification does not wait for:
// what is asked next also says when and where something was published.
func (s *space) load(values ...string) {
	s.t.Helper()
	s.run("source load -file " + s.Write("load.jsonl", strings.Join(values, "\n")+"\n"))
	if a := s.Call(s.t.Context(), "amends verify -timeout 3m"); a.Code != 0 && a.Code != 4 { // both say complete
		s.t.Fatalf("amends verify: code %d\n%s%s", a.Code, a.Stdout, a.Stderr)
	}
	programtest.Await(s.t, "every receipt is written", func() bool {
		return strings.Contains(s.Call(s.t.Context(), "amends status").First(), "; outbox 0; ")
	})
}

// call runs a program of those arguments in this process.
func (s *space) call(args ...string) programtest.Answer {
	s.t.Helper()
	return s.CallWords(s.t.Context(), "", append([]string{"amends"}, args...)...)
}

// want runs a command line in this process and checks its code.
func (s *space) want(code int, line string) programtest.Answer {
	s.t.Helper()
	a := s.Call(s.t.Context(), "amends "+line)
	if a.Code != code {
		s.t.Fatalf("amends %s: code %d, want %d\n%s%s", line, a.Code, code, a.Stdout, a.Stderr)
	}
	return a
}

func (s *space) run(line string) string {
	s.t.Helper()
	return s.want(0, line).Stdout
}

// fixture returns the lines of a file of the worked example.
func fixture(t *testing.T, name string) []string {
	t.Helper()
	b, err := os.ReadFile(programtest.Fixture(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// movement is a value of S3.
func movement(key [2]string, txn string, revision int, day, kind string, quantity int64) string {
	return fmt.Sprintf(`{"schema":1,"txn_id":%q,"revision":%d,"state":"active","item":%q,"location":%q,"day":%q,"kind":%q,"quantity":%d}`,
		txn, revision, key[0], key[1], day, kind, quantity)
}

func cancelled(key [2]string, txn string, revision int) string {
	return fmt.Sprintf(`{"schema":1,"txn_id":%q,"revision":%d,"state":"cancelled","item":%q,"location":%q}`, txn, revision, key[0], key[1])
}
