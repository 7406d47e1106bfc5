package programtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"amends/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m) }

func TestWords(t *testing.T) {
	t.Parallel()
	s := programtest.New(t)
	want := []string{"amends", "-c", "two words", filepath.Join(s.Dir, "a.json"), "b"}
	if got := s.Words("amends  -c 'two words' @a.json b"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The program says the same in this process, as the test binary that stands in for it, and as built.
func TestEveryWayToRunACommand(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*programtest.Shell{"stand-in": programtest.New(t), "built": programtest.Built(t, false)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, line := range []string{"amends verify -manifest @none.json", "amendsctl verify -manifest @none.json", "amends generate -records 3 -seed 1"} {
				called, ran := s.Call(t.Context(), line), s.Run(line)
				_, cause, _ := strings.Cut(called.Cause(), ": ") // behind the program's name
				if called.Stdout != ran.Stdout || !ran.Is(called.Code, cause) {
					t.Errorf("%s: %+v in this process, %+v as one of its own", line, called, ran)
				}
			}
			if a := s.Want(2, "none.json", "amends verify -manifest @none.json"); a.Stdout != "" || a.First() != "" {
				t.Errorf("%q", a.Stdout)
			}
			if a := s.Must(0, "", "amends generate -records 3 -seed 1"); strings.Count(a.Stdout, "\n") != 3 {
				t.Errorf("%q", a.Stdout)
			}
		})
	}
}

// The environment of a test does not reach a command, that of the shell does.
func TestEnvironment(t *testing.T) {
	t.Setenv("AMENDS_RECORDS", "7")
	s := programtest.New(t)
	if got := strings.Count(s.Must(0, "", "amends generate -seed 3").Stdout, "\n"); got == 7 {
		t.Error("AMENDS_RECORDS of the test reached a command")
	}
	s.Env["AMENDS_RECORDS"] = "5"
	for _, a := range []programtest.Answer{s.Must(0, "", "amends generate -seed 3"), s.Call(t.Context(), "amends generate -seed 3")} {
		if got := strings.Count(a.Stdout, "\n"); got != 5 {
			t.Errorf("%d records, want 5", got)
		}
	}
}

// A role that waits for its services is stopped, and killed.
func TestProcess(t *testing.T) {
	t.Parallel()
	s := programtest.New(t)
	s.Env["AMENDS_DATABASE_URL"], s.Env["AMENDS_BROKERS"] = "postgres://amends@127.0.0.1:1/none", "127.0.0.1:1"
	const waits = "waiting for"
	start := func() *programtest.Process {
		p := s.StartWith("amends migrate up", "AMENDS_BROKERS=127.0.0.1:2")
		programtest.Await(t, waits, func() bool { return strings.Contains(p.Stderr.String(), waits) || p.Ended() })
		if p.Ended() {
			t.Fatalf("ended: %+v", p.Wait())
		}
		return p
	}
	killed := start()
	killed.Kill()
	if a := killed.Wait(); a.Code != -1 || !strings.Contains(killed.Stderr.Last(1), waits) {
		t.Errorf("%+v", a)
	}
	stopped := start()
	stopped.Signal(syscall.SIGTERM)
	select {
	case <-stopped.Done():
	case <-time.After(programtest.Deadline):
		t.Fatal("still runs after SIGTERM")
	}
	stopped.Ends(stopped.Wait().Code, "")
	if _, err := os.Stat(programtest.Fixture(t, "before.jsonl")); err != nil {
		t.Error(err)
	}
}

// A reader takes members that it does not know; an answer of a test may have none, wherever they are, and is one value for every
// one that conforms.
func TestAnAnswerIsWhatItsSchemaSays(t *testing.T) {
	t.Parallel()
	open, closed := programtest.Documented(t, "migrate-status")
	sum := strings.Repeat("0a", 32)
	one := `{"version":1,"name":"first","state":"applied","checksum":"` + sum + `"}`
	for answer, want := range map[string][2]bool{
		`{"schema":1,"migrations":[]}`:                                                              {true, true},
		`{"schema":1,"migrations":[` + one + `]}`:                                                   {true, true},
		`{"schema":1,"migrations":[],"more":0}`:                                                     {true, false},
		`{"schema":1,"migrations":[` + strings.Replace(one, "{", `{"more":0,`, 1) + `]}`:            {true, false},
		`{"schema":1,"migrations":[` + strings.Replace(one, "applied", "missed", 1) + `]}`:          {false, false},
		`{"schema":1,"migrations":[` + strings.Replace(one, `"name":"first",`, "", 1) + `]}`:        {false, false},
		`{"schema":1,"migrations":[` + strings.Replace(one, sum, "0a", 1) + `]}`:                    {false, false},
		`{"schema":1,"migrations":[` + strings.Replace(one, `"version":1`, `"version":0`, 1) + `]}`: {false, false},
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(answer))
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{open.Validate(v) == nil, closed.Validate(v) == nil}; got != want {
			t.Errorf("%s: the open schema and the closed one take it: %v, want %v", answer, got, want)
		}
	}
	for answer, want := range map[string]int{"": 0, `{"schema":1,"migrations":[]}`: 1, `{"schema":1,"migrations":[]}` + "\n" + `{"schema":1,"migrations":[]}` + "\n": 2} {
		if got := programtest.Conforms(t, "migrate-status", answer); got != want {
			t.Errorf("%q: %d values, want %d", answer, got, want)
		}
	}
}
