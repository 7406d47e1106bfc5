package restore_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// conforms checks a JSON answer against its documented schema, by which a member that is not documented is wrong.
func (w *world) conforms(command, answer string) {
	w.t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "docs", "reference", "schemas", command+".schema.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	document, err := jsonschema.FileLoader{}.Load("file://" + path)
	if err != nil {
		w.t.Fatal(err)
	}
	closed(document)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	const at = "memory:///closed.json"
	if err := c.AddResource(at, document); err != nil {
		w.t.Fatal(err)
	}
	schema, err := c.Compile(at)
	if err != nil {
		w.t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(answer))
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil {
		w.t.Errorf("%s: %v\n%s", command, err, answer)
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

// Every answer is as documented: dry, executed, done before, held up, blocked, equal and different.
func TestAnswersAreTheDocumentedSchemas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.loadedBlocked()
	for _, c := range []struct {
		command, line string
		code          int
	}{
		{"replay", "replay -manifest @pipeline.json", 0},
		{"replay", "replay -manifest @pipeline.json -execute", 0},
		{"rebuild", rebuild, 0},
		{"rebuild", rebuild + " -execute -timeout 3s", 3},
		{"rebuild", rebuild, 0},
		{"rebuild", rebuild + " -execute", 4},
		{"rebuild", rebuild + " -execute", 4},
		{"compare", compare, 0},
	} {
		release := func() {}
		if c.code == 3 {
			release = w.guard()
		}
		w.conforms(c.command, w.want(c.code, "", c.line+" -o json").Stdout)
		release()
	}
	w.exec(`UPDATE amends.view_rows SET close = close + 1 WHERE kind = 1 AND namespace_id = (SELECT namespace_id FROM amends.rebuilds)`)
	w.conforms("compare", w.want(5, "", compare+" -o json").Stdout)
	w.exec(`DELETE FROM amends.view_rows WHERE namespace_id = (SELECT namespace_id FROM amends.rebuilds)`)
	w.conforms("compare", w.want(5, "", compare+" -o json").Stdout)
	w.exec(`UPDATE amends.journal SET digest = substr(sha256(digest), 1, 16)`)
	w.conforms("replay", w.want(11, "", "replay -manifest @pipeline.json -o json").Stdout)
}
