package operator

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"amends/internal/bench"
)

// schemas is the folder of the documented schemas.
var schemas = filepath.Join("..", "..", "docs", "reference", "schemas")

// documented returns the schema of an answer: as it is documented, and one by which a member that is not documented is
// wrong. A reader must take unknown members; this test must not.
func documented(t *testing.T, name string) (open, closed *jsonschema.Schema) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(schemas, name+".schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if open, err = c.Compile(path); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	b, err := jsonschema.FileLoader{}.Load("file://" + path)
	if err != nil {
		t.Fatal(err)
	}
	c = jsonschema.NewCompiler()
	const at = "memory:///closed.json"
	if err := c.AddResource(at, shut(b)); err != nil {
		t.Fatal(err)
	}
	if closed, err = c.Compile(at); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return open, closed
}

// shut adds to every schema of an object that no other members are allowed, unless it speaks of them itself.
func shut(v any) any {
	switch v := v.(type) {
	case map[string]any:
		_, properties := v["properties"].(map[string]any)
		_, said := v["additionalProperties"]
		for k, inner := range v {
			if k == "properties" || k == "$defs" {
				for name, s := range inner.(map[string]any) {
					inner.(map[string]any)[name] = shut(s)
				}
				continue
			}
			if k != "enum" && k != "const" {
				v[k] = shut(inner)
			}
		}
		if properties && !said {
			v["additionalProperties"] = false
		}
	case []any:
		for i := range v {
			v[i] = shut(v[i])
		}
	}
	return v
}

// conforms checks every JSON value of an answer against the schema of that name, and returns how many there were.
func conforms(t *testing.T, name, answer string) int {
	t.Helper()
	if _, err := os.Stat(filepath.Join(schemas, name+".schema.json")); err != nil {
		t.Errorf("%s is not documented: %v", name, err)
		return len(answer)
	}
	_, closed := documented(t, name)
	d := json.NewDecoder(strings.NewReader(answer))
	n := 0
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			t.Errorf("%s: %v in %s", name, err, answer)
			return n
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err == nil {
			err = closed.Validate(v)
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, raw)
		}
		n++
	}
	return n
}

// Every documented schema is one, refuses what is no object, and says of itself what it is.
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
		open, _ := documented(t, name)
		if open.Title == "" || open.Description == "" || open.Validate([]any{}) == nil || open.Validate(map[string]any{}) == nil {
			t.Errorf("%s: title %q, description %q, or takes anything", name, open.Title, open.Description)
		}
	}
}

// Every command that answers in JSON has its schema, and every schema its command.
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
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".schema.json")
		if !answers[name] {
			t.Errorf("%s belongs to no command", f)
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
		conforms(t, "bench", string(b))
	}
}
