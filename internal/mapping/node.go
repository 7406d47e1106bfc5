package mapping

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Error is a mapping file that is refused, or that does not fit the file that it is for.
type Error struct {
	Reason string
	Line   int // of the mapping file, 0 where none is to blame
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
}

// node is a part of a mapping file. Scalars keep the text as it is written: 007 stays 007.
type node struct {
	text    string
	list    []node
	entries []entry
	line    int
	kind    byte // one of those below
}

// entry is a name with its value.
type entry struct {
	name  string
	value node
}

// The kinds of nodes.
const (
	scalar = 's'
	list   = 'l'
	object = 'o'
	none   = 'n'
)

func (n node) errorf(format string, args ...any) error {
	return &Error{Line: n.line, Reason: fmt.Sprintf(format, args...)}
}

// read parses YAML: one document, one mapping, no anchors, aliases or tags.
func read(raw []byte) (node, error) {
	file, err := parser.ParseBytes(raw, 0)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return node{}, &Error{Reason: "no valid YAML: " + first}
	}
	var docs []ast.Node
	for _, d := range file.Docs {
		if _, comment := d.Body.(*ast.CommentGroupNode); d.Body != nil && !comment {
			docs = append(docs, d.Body)
		}
	}
	if len(docs) != 1 {
		return node{}, &Error{Reason: fmt.Sprintf("a mapping file is one YAML document, this has %d", len(docs))}
	}
	n, err := convert(docs[0])
	if err == nil && n.kind != object {
		err = n.errorf("names with values are expected, as in item: \"{sku}\"")
	}
	return n, err
}

func convert(in ast.Node) (node, error) {
	n := node{line: in.GetToken().Position.Line}
	switch v := in.(type) {
	case *ast.MappingNode:
		return entriesOf(n, v.Values)
	case *ast.MappingValueNode:
		return entriesOf(n, []*ast.MappingValueNode{v})
	case *ast.SequenceNode:
		n.kind = list
		for _, item := range v.Values {
			c, err := convert(item)
			if err != nil {
				return n, err
			}
			n.list = append(n.list, c)
		}
	case *ast.StringNode:
		n.kind, n.text = scalar, v.Value
	case *ast.LiteralNode:
		n.kind, n.text = scalar, v.Value.Value
	case *ast.NullNode:
		n.kind = none
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = scalar, v.GetToken().Value
	default:
		return n, n.errorf("anchors, aliases, tags and merge keys are not read here")
	}
	return n, nil
}

func entriesOf(n node, values []*ast.MappingValueNode) (node, error) {
	n.kind = object
	for _, v := range values {
		key, err := convert(v.Key)
		if err != nil {
			return n, err
		}
		if key.kind != scalar {
			return n, key.errorf("a name is expected")
		}
		value, err := convert(v.Value)
		if err != nil {
			return n, err
		}
		if value.kind == none {
			return n, key.errorf("%q has no value", key.text)
		}
		if slices.ContainsFunc(n.entries, func(e entry) bool { return e.name == key.text }) {
			return n, key.errorf("%q is given twice", key.text)
		}
		if value.kind == scalar {
			value.line = key.line
		}
		n.entries = append(n.entries, entry{key.text, value})
	}
	return n, nil
}

// get returns the value of a name.
func (n node) get(name string) (node, bool) {
	for _, e := range n.entries {
		if e.name == name {
			return e.value, true
		}
	}
	return node{}, false
}

// known refuses other names than those of Keys, and anything but an object.
func (n node) known(what string) error {
	names := Keys(what)
	if n.kind != object {
		return n.errorf("%s: names with values are expected: %s", what, strings.Join(names, ", "))
	}
	for _, e := range n.entries {
		if !slices.Contains(names, e.name) {
			where := ""
			if what != "" {
				where = what + ": "
			}
			return &Error{Line: e.value.line, Reason: fmt.Sprintf("%sunknown name %q; known are: %s", where, e.name, strings.Join(names, ", "))}
		}
	}
	return nil
}

// word reads one of some words.
func (n node) word(what string, allowed ...string) (string, error) {
	if n.kind != scalar || !slices.Contains(allowed, n.text) {
		return "", n.errorf("%s: one of %s is expected", what, strings.Join(allowed, ", "))
	}
	return n.text, nil
}

// string reads one value.
func (n node) string(what string) (string, error) {
	if n.kind != scalar {
		return "", n.errorf("%s: one value is expected", what)
	}
	return n.text, nil
}

// strings reads one value or a list of values.
func (n node) strings(what string) ([]string, error) {
	if n.kind == scalar {
		return []string{n.text}, nil
	}
	var out []string
	for _, item := range n.list {
		s, err := item.string(what)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, n.errorf("%s: a value or a list of values is expected", what)
	}
	return out, nil
}

// several returns the members of a list, or the one that there is.
func (n node) several() []node {
	if n.kind == list {
		return n.list
	}
	return []node{n}
}
