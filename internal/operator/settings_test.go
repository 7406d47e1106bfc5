package operator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// printed is what config print answers.
type printed struct {
	File     *string
	Settings []struct {
		Name, Variable, Value, From string
		Secret, Set                 bool
		Line                        int
		Commands                    []string
	}
	Unknown []struct{ Variable, Nearest string }
}

// What is set for a flag of one command leaves the flag of the same name alone that means something else on another.
func TestFlagsThatDifferHaveSettingsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil)
	s.Env["AMENDS_INSPECT_FORMAT"], s.Env["AMENDS_DIAGNOSTICS_ONLY"], s.Env["AMENDS_DIAGNOSTICS_LIMIT"] = "html", "current", "7"
	s.Env["AMENDS_FORMAT"] = "xml" // of nobody now
	a := s.call(0, "amends config print")
	for _, want := range []string{"inspect-format  ", "environment AMENDS_INSPECT_FORMAT\n", "diagnostics-only  ", "tail-only  ", "source-load-format  "} {
		if !strings.Contains(a.Stdout, want) {
			t.Errorf("no %q in\n%s", want, a.Stdout)
		}
	}
	if !strings.Contains(a.Stderr, "AMENDS_FORMAT is no setting and has no effect") {
		t.Error(a.Stderr)
	}
	for _, line := range []string{"amends source load -manifest @absent.json -file @absent.jsonl", "amends tail -manifest @absent.json", "amends inspect -manifest @absent.json"} {
		if a := s.call(2, line); !strings.Contains(a.Cause(), "absent.json") {
			t.Errorf("%s: %s", line, a.Stderr)
		}
	}
	s.Env["AMENDS_CONFIG"], s.Env["AMENDS_FILE"] = s.Path("shop.json"), s.Path("absent.jsonl") // of source create and source load
	if a := s.call(0, "amends generate -records 3"); strings.Count(a.Stdout, "\n") != 3 {
		t.Errorf("%q", a.Stdout)
	}
	if a := s.call(2, "amends demo -broker-port 99999"); !strings.Contains(a.Cause(), "not a port") {
		t.Error(a.Stderr)
	}
	if a := s.call(2, "amends demo -file @absent.csv"); !strings.Contains(a.Cause(), "-file belongs to: amends demo retail") {
		t.Error(a.Stderr)
	}
	s.Env["AMENDS_SOURCE_LOAD_FORMAT"] = "html"
	if a := s.call(2, "amends source load -manifest @absent.json -file @absent.jsonl"); !strings.Contains(a.Cause(), "-format jsonl or raw") {
		t.Error(a.Stderr)
	}
}

func TestConfigPrintSaysWhereValuesComeFrom(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil)
	s.Env["AMENDS_CONFIG_FILE"] = s.Write("amends.yaml", "# shop\nbrokers: [a:1, b:2]\ntimeout: 90s\n\nfile: f.jsonl\n")
	s.Env["AMENDS_TIMEOUT"] = "5s"
	s.Env["AMENDS_DATABASE_URL_FILE"] = s.Write("secret", "postgres://u:hush@h/d")
	s.Env["AMENDS_BROKRES"] = "c:3"
	s.Env["AMENDS_XYZZY"] = "1"
	s.Env["AMENDS_TEST_DATA"] = "/nowhere"
	s.Env["UNRELATED"] = "1"
	a := s.call(0, "amends config print -o json")
	var got printed
	if err := json.Unmarshal([]byte(a.Stdout), &got); err != nil {
		t.Fatal(err)
	}
	if got.File == nil || *got.File != s.Path("amends.yaml") {
		t.Errorf("file %v", got.File)
	}
	set := map[string]string{}
	for _, x := range got.Settings {
		if x.Set {
			set[x.Name] = fmt.Sprintf("%s %s %s %d %v", x.Variable, x.Value, x.From, x.Line, x.Secret)
		}
	}
	want := map[string]string{
		"brokers":      "AMENDS_BROKERS a:1,b:2 file 2 false",
		"timeout":      "AMENDS_TIMEOUT 5s environment 0 false",
		"file":         "AMENDS_FILE f.jsonl file 5 false",
		"dir":          "AMENDS_DIR " + s.Env["AMENDS_DIR"] + " environment 0 false",
		"database_url": "AMENDS_DATABASE_URL_FILE  environment 0 true",
	}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Error(diff)
	}
	if u := fmt.Sprint(got.Unknown); u != "[{AMENDS_BROKRES AMENDS_BROKERS} {AMENDS_XYZZY }]" {
		t.Error(u)
	}
	a = s.call(0, "amends config print")
	if want := "5 settings are not the default: 3 in the environment, 2 in " + s.Path("amends.yaml") + ", 0 by the running embedded stack"; a.First() != want {
		t.Errorf("%q, want %q", a.First(), want)
	}
	if !strings.Contains(a.Stderr, "AMENDS_BROKRES is no setting and has no effect; did you mean AMENDS_BROKERS?\nAMENDS_XYZZY is no setting and has no effect\n") {
		t.Error(a.Stderr)
	}
	for _, out := range []string{a.Stdout, a.Stderr} {
		if strings.Contains(out, "hush") || strings.Contains(out, s.Path("secret")) {
			t.Errorf("a secret is shown: %s", out)
		}
	}
}

// Where commands differ in a default, each has its own row.
func TestConfigPrintKeepsDefaultsApart(t *testing.T) {
	t.Parallel()
	var got printed
	if err := json.Unmarshal([]byte(newShell(t, nil).call(0, "amendsctl config-print -o json").Stdout), &got); err != nil {
		t.Fatal(err)
	}
	roles := map[string]string{}
	for _, x := range got.Settings {
		if x.Name == "role" {
			roles[x.Value] = strings.Join(x.Commands, ",")
		}
	}
	if roles["[source]"] != "(no command)" || roles["[source,relay,view]"] != "run" {
		t.Error(roles)
	}
	if got.File != nil {
		t.Error(*got.File)
	}
}

func TestConfigPrintRefusesAFileThatNoCommandWouldTake(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil)
	s.Env["AMENDS_CONFIG_FILE"] = s.Write("amends.yaml", "brokers: a:1\nbroker: b\n")
	if a := s.call(2, "amends config print"); !strings.Contains(a.Cause(), "line 2") {
		t.Error(a.Stderr)
	}
}
