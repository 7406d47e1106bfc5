package programtest

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Documented returns the schema docs/reference/schemas/NAME.schema.json: as it is documented, and one by which a member that is
// not documented is wrong. A reader must take unknown members; a test must not.
func Documented(t testing.TB, name string) (open, closed *jsonschema.Schema) {
	t.Helper()
	path := filepath.Join(root(t), "docs", "reference", "schemas", name+".schema.json")
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	open, err := c.Compile(path)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	document, err := jsonschema.FileLoader{}.Load("file://" + path)
	if err != nil {
		t.Fatal(err)
	}
	shut(document)
	c = jsonschema.NewCompiler()
	c.AssertFormat()
	const at = "memory:///closed.json"
	if err := c.AddResource(at, document); err != nil {
		t.Fatal(err)
	}
	if closed, err = c.Compile(at); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return open, closed
}

// shut adds to every schema that names members that no others are allowed, unless it speaks of them itself.
func shut(v any) {
	switch v := v.(type) {
	case map[string]any:
		members, named := v["properties"].(map[string]any)
		for word, inner := range v {
			if word != "properties" && word != "enum" && word != "const" {
				shut(inner)
			}
		}
		for _, one := range members { // their names are no words of a schema
			shut(one)
		}
		if _, said := v["additionalProperties"]; named && !said {
			v["additionalProperties"] = false
		}
	case []any:
		for _, one := range v {
			shut(one)
		}
	}
}

// Conforms checks every JSON value of an answer against the closed schema of that name, and returns how many there were.
func Conforms(t testing.TB, name, answer string) int {
	t.Helper()
	_, closed := Documented(t, name)
	d := json.NewDecoder(strings.NewReader(answer))
	n := 0
	for ; d.More(); n++ {
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
	}
	return n
}
