package operate_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// conforms checks a JSON answer against its documented schema, by which a member that is not documented is wrong.
func conforms(t *testing.T, command, answer string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "docs", "reference", "schemas", command+".schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.FileLoader{}.Load("file://" + path)
	if err != nil {
		t.Fatal(err)
	}
	closed(document)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	const at = "memory:///closed.json"
	if err := c.AddResource(at, document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(at)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(answer))
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", command, err, answer)
	}
}

// closed allows no members beyond those that a schema names.
func closed(v any) {
	switch v := v.(type) {
	case map[string]any:
		properties, ok := v["properties"].(map[string]any)
		for name, s := range v {
			if name != "properties" {
				closed(s)
			}
		}
		for _, s := range properties {
			closed(s)
		}
		if ok {
			v["additionalProperties"] = false
		}
	case []any:
		for _, s := range v {
			closed(s)
		}
	}
}
