package operator

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"amends/internal/bench"
	"amends/internal/programtest"
)

// schemas is the folder of the documented schemas.
var schemas = filepath.Join("..", "..", "docs", "reference", "schemas")

// Every documented schema is one, refuses what is no object, says of itself what it is, and of every member what it may be.
func TestSchemasAreSchemas(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(schemas, "*"))
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(filepath.Base(f), ".schema.json")
		if !ok {
			t.Errorf("%s is not named NAME.schema.json", f)
			continue
		}
		open, _ := programtest.Documented(t, name)
		if open.Title == "" || open.Description == "" || open.Validate([]any{}) == nil || open.Validate(map[string]any{}) == nil {
			t.Errorf("%s: title %q, description %q, or takes anything", name, open.Title, open.Description)
		}
		for _, path := range vague(name, open) {
			t.Errorf("%s may be anything", path)
		}
	}
}

// vague names the values below a schema of which it says neither a type nor the values that there are.
func vague(path string, s *jsonschema.Schema) (paths []string) {
	if s == nil || s.Types == nil && s.Enum == nil && s.Const == nil {
		return []string{path}
	}
	if s.Types != nil && slices.Contains(s.Types.ToStrings(), "array") {
		paths = vague(path+"[]", s.Items2020)
	}
	for name, one := range s.Properties {
		paths = append(paths, vague(path+"."+name, one)...)
	}
	return paths
}

// Every command that answers in JSON has its schema, and every schema its command and its place in the reference.
func TestEveryAnswerHasItsSchema(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil)
	answers := map[string]bool{}
	for _, words := range commands(t, s, "amends") {
		help := s.words(append(words, "-help")...).Stdout
		if at := strings.Index(help, " on stdout: text"); at >= 0 && strings.Contains(strings.SplitN(help[at:], "\n", 2)[0], "json") {
			answers[strings.Join(words[1:], "-")] = true
		}
	}
	if len(answers) < 15 {
		t.Fatalf("only %v answer in JSON", answers)
	}
	files, err := filepath.Glob(filepath.Join(schemas, "*"))
	if err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile(filepath.Join(schemas, "..", "json.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".schema.json")
		if !answers[name] {
			t.Errorf("%s belongs to no command", f)
		}
		if !strings.Contains(string(reference), "](schemas/"+filepath.Base(f)+")") {
			t.Errorf("json.md does not name %s", f)
		}
		delete(answers, name)
	}
	for name := range answers {
		t.Errorf("%s answers in JSON and has no schema", name)
	}
}

// What a benchmark measures is written as its schema says, with every part and with none.
func TestBenchmarksConform(t *testing.T) {
	t.Parallel()
	speed := bench.Speed{Records: 1, Outputs: 2, Elapsed: 3, Processor: 4}
	for _, r := range []bench.Report{{Schema: 1}, {Schema: 1, PostgreSQL: "18", Broker: "kfake", Results: []bench.Result{{Workload: "short", Amends: speed}}, Copy: speed,
		Worker: []bench.Worker{{Workload: "short", Speed: speed, WAL: 5}}, Corrections: []bench.Correction{{Movements: 1}}, Takeover: &bench.Takeover{Runs: 1}}} {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		programtest.Conforms(t, "bench", string(b))
	}
}
