package query_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// schema is what of JSON Schema the documented surfaces use.
type schema struct {
	Properties map[string]*schema
	Items      *schema
	Const      any
	Minimum    *json.Number
	Pattern    string
	Type       any
	Required   []string
	Enum       []any
}

// check says where a value is not as the schema has it, or has a member that the schema does not name.
func (s *schema) check(path string, v any) error {
	kind := "null"
	switch n := v.(type) {
	case map[string]any:
		kind = "object"
	case []any:
		kind = "array"
	case string:
		kind = "string"
	case bool:
		kind = "boolean"
	case json.Number:
		kind = "number"
		if !strings.ContainsAny(n.String(), ".eE") {
			kind = "integer"
		}
	}
	types, several := s.Type.([]any)
	if !several {
		types = []any{s.Type}
	}
	switch {
	case !slices.Contains(types, any(kind)):
		return fmt.Errorf("%s is %s %v, want %v", path, kind, v, s.Type)
	case s.Const != nil && v != s.Const, s.Enum != nil && !slices.Contains(s.Enum, v):
		return fmt.Errorf("%s is %v", path, v)
	case s.Minimum != nil && kind == "integer" && strings.HasPrefix(v.(json.Number).String(), "-"):
		return fmt.Errorf("%s is %v, below %v", path, v, s.Minimum)
	case s.Pattern != "" && kind == "string" && !regexp.MustCompile(s.Pattern).MatchString(v.(string)):
		return fmt.Errorf("%s is %q, want %s", path, v, s.Pattern)
	}
	if list, ok := v.([]any); ok {
		for i, one := range list {
			if err := s.Items.check(fmt.Sprintf("%s[%d]", path, i), one); err != nil {
				return err
			}
		}
	}
	members, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	for _, name := range s.Required {
		if _, there := members[name]; !there {
			return fmt.Errorf("%s has no %s", path, name)
		}
	}
	for name, one := range members {
		if s.Properties[name] == nil {
			return fmt.Errorf("%s.%s is not documented", path, name)
		}
		if err := s.Properties[name].check(path+"."+name, one); err != nil {
			return err
		}
	}
	return nil
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

// Every JSON answer is as its schema in docs/reference/schemas says, and no member of it is missing there.
func TestAnswersAreTheDocumentedSchemas(t *testing.T) {
	t.Parallel()
	s := newSpace(t, shop)
	s.start("source,relay,view")
	nut, bolt := [2]string{"nut", "paris"}, [2]string{"bolt", "paris"}
	s.load(movement(nut, "A", 1, "2026-01-02", "receipt", 5000), cancelled(nut, "A", 2), movement(nut, "A", 3, "2026-01-03", "receipt", 1),
		movement(nut, "C", 1, "2026-01-04", "opening_count", 7), movement(nut, "D", 1, "2026-01-04", "issue", 9), movement(nut, "C", 2, "2026-01-05", "closing_count", 0),
		movement(bolt, "A", 1, "2026-01-02", "receipt", 5000), movement(bolt, "B", 1, "2026-01-03", "issue", 4000), movement(bolt, "A", 1, "2026-01-02", "receipt", 1))
	checked := 0
	for line, name := range map[string]string{
		"explain nut paris": "explain", "explain nut paris 2026-01-04": "explain", "explain bolt paris 2026-01-03": "explain", "explain bolt paris": "explain",
		"explain nut paris 2026-01-03 -lines 0": "explain", "explain nut paris -known-at 0": "explain",
		"balance nut paris": "balance", "balance bolt paris -from 2026-01-01": "balance", "balance nut paris 2026-01-01": "balance", "balance nut paris -to 2026-01-01": "balance",
		"history nut paris": "history", "history bolt paris": "history", "history nut paris -known-at 0/0": "history",
		"diff -at 0/0 -at 0/9": "diff", "diff -at 1/1 -at 1/9": "diff", "diff -at 2020-01-01T00:00Z -at 2020-01-02T00:00Z": "diff",
		"tail -e": "tail",
	} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "schemas", name+".schema.json"))
		if err != nil {
			t.Fatal(err)
		}
		var want schema
		decode(t, raw, &want)
		answers := []string{s.run(line + " -o json")}
		if name == "tail" {
			answers = strings.Split(strings.TrimSpace(answers[0]), "\n")
		}
		for _, a := range answers {
			var got any
			decode(t, []byte(a), &got)
			if err := want.check(name, got); err != nil {
				t.Errorf("amends %s: %v\n%s", line, err, a)
			}
			checked++
		}
	}
	if checked < 25 {
		t.Errorf("%d answers were checked", checked)
	}
}
