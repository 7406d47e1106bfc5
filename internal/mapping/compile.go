package mapping

import (
	"slices"
	"strings"

	"amends/internal/ledger"
)

// compiler turns the nodes of a mapping file into what maps rows. Column returns the place of a column.
type compiler struct {
	column  func(name string) (int, error)
	scale   int
	ordinal bool // {ordinal} has a meaning
}

// outcome is what a row is.
type outcome uint8

const (
	unknown outcome = iota
	receipt
	issue
	openingCount
	closingCount
	cancelled
	leftOut
)

var outcomes = []string{receipt: "receipt", issue: "issue", openingCount: "opening_count", closingCount: "closing_count", cancelled: "cancelled", leftOut: "leave_out"}

// kind returns the kind of S3 of a movement or a count.
func (o outcome) kind() ledger.Kind {
	k, _ := ledger.ParseKind(outcomes[o])
	return k
}

func (o outcome) movement() bool { return o == receipt || o == issue }

func (n node) outcome(what string) (outcome, error) {
	word, err := n.word(what, outcomes[receipt:]...)
	return outcome(slices.Index(outcomes, word)), err
}

// template is text with the values of columns in it.
type template struct {
	parts  []part
	source string
}

// part is literal text, or the column at index, or the row's ordinal.
type part struct {
	literal string
	index   int
}

const (
	isLiteral = -1
	isOrdinal = -2
)

// template compiles text with {column} in it; {{ and }} stand for braces.
func (c *compiler) template(n node, what string) (template, error) {
	text, err := n.string(what)
	if err != nil {
		return template{}, err
	}
	t, literal := template{source: text}, ""
	for rest := text; rest != ""; {
		at := strings.IndexAny(rest, "{}")
		if at < 0 {
			literal += rest
			break
		}
		literal += rest[:at]
		if strings.HasPrefix(rest[at:], "{{") || strings.HasPrefix(rest[at:], "}}") {
			literal, rest = literal+rest[at:at+1], rest[at+2:]
			continue
		}
		name, after, ok := strings.Cut(rest[at+1:], "}")
		if rest[at] == '}' || !ok {
			return t, n.errorf("%s: %q has a brace without its partner; {{ and }} stand for braces themselves", what, text)
		}
		if literal != "" {
			t.parts, literal = append(t.parts, part{literal: literal, index: isLiteral}), ""
		}
		rest = after
		if name == "ordinal" && c.ordinal {
			t.parts = append(t.parts, part{index: isOrdinal})
			continue
		}
		i, err := c.column(name)
		if err != nil {
			return t, n.errorf("%s: %v", what, err)
		}
		t.parts = append(t.parts, part{index: i})
	}
	if literal != "" {
		t.parts = append(t.parts, part{literal: literal, index: isLiteral})
	}
	if len(t.parts) == 0 {
		return t, n.errorf("%s: is empty", what)
	}
	return t, nil
}

// condition holds of a row or not.
type condition struct {
	values   []string // is, is_not
	all      []condition
	prefix   string
	test     string // the name in the mapping file
	index    int
	other    int  // of differs_from
	empty    bool // what empty wants
	negative bool // what quantity wants
	zero     bool
}

func (c *compiler) conditions(n node, what string) ([]condition, error) {
	var out []condition
	for _, m := range n.several() {
		one, err := c.condition(m, what)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil, n.errorf("%s: a condition is expected, as in {column: status, is: VOID}", what)
	}
	return out, nil
}

// condition compiles one test of one column, a test of the quantity, or all of several conditions.
func (c *compiler) condition(n node, what string) (condition, error) {
	if err := n.known("condition"); err != nil {
		return condition{}, err
	}
	out := condition{}
	column, has := n.get("column")
	for _, e := range n.entries {
		if e.name == "column" {
			continue
		}
		if out.test != "" {
			return out, n.errorf("%s: one test is expected, not both %s and %s; all: [...] joins conditions", what, out.test, e.name)
		}
		out.test = e.name
		if err := c.test(&out, e, what); err != nil {
			return out, err
		}
	}
	alone := out.test == "quantity" || out.test == "all"
	switch {
	case out.test == "":
		return out, n.errorf("%s: a test is expected beside column: %s", what, strings.Join(keys["condition"][1:], ", "))
	case alone && has:
		return out, n.errorf("%s: %s goes without column", what, out.test)
	case !alone && !has:
		return out, n.errorf("%s: %s goes with column", what, out.test)
	case alone:
		return out, nil
	}
	i, err := c.named(column, what)
	out.index = i
	return out, err
}

// test compiles one test of a condition.
func (c *compiler) test(out *condition, e entry, what string) (err error) {
	switch e.name {
	case "is", "is_not":
		out.values, err = e.value.strings(what + ": " + e.name)
	case "starts_with":
		if out.prefix, err = e.value.string(what + ": starts_with"); err == nil && out.prefix == "" {
			err = e.value.errorf("%s: starts_with: is empty", what)
		}
	case "empty":
		var word string
		word, err = e.value.word(what+": empty", "true", "false")
		out.empty = word == "true"
	case "differs_from":
		out.other, err = c.named(e.value, what+": differs_from")
	case "quantity":
		var word string
		word, err = e.value.word(what+": quantity", "negative", "positive", "zero")
		out.negative, out.zero = word == "negative", word == "zero"
	case "all":
		out.all, err = c.conditions(e.value, what+": all")
	}
	return err
}

// named returns the place of the column that a scalar names.
func (c *compiler) named(n node, what string) (int, error) {
	name, err := n.string(what)
	if err != nil {
		return 0, err
	}
	i, err := c.column(name)
	if err != nil {
		return 0, n.errorf("%s: %v", what, err)
	}
	return i, nil
}

// kindRule says what a row is where its condition holds, or always.
type kindRule struct {
	when *condition
	is   outcome
}

// kinds are the rules of what a row is: by the value of a column, or the first rule that holds.
type kinds struct {
	values    map[string]outcome
	rules     []kindRule
	source    string // the column of values
	index     int
	otherwise outcome
	bySign    bool // the sign only chooses: the quantity is its magnitude
}

func (c *compiler) kinds(n node) (k kinds, err error) {
	switch n.kind {
	case scalar:
		is, err := n.outcome("kind")
		return kinds{rules: []kindRule{{is: is}}}, err
	case list:
		for i, m := range n.list {
			rule, err := c.kindRule(m)
			if err != nil {
				return k, err
			}
			if rule.when == nil && i < len(n.list)-1 {
				return k, m.errorf("kind: a rule without when holds always: those behind it would never be asked")
			}
			k.rules = append(k.rules, rule)
		}
		if k.rules == nil {
			return k, n.errorf("kind: a rule is expected, as in [{when: {quantity: negative}, is: issue}, {is: receipt}]")
		}
		return k, nil
	}
	if err := n.known("kind"); err != nil {
		return k, err
	}
	positive, hasPositive := n.get("positive")
	negative, hasNegative := n.get("negative")
	if hasPositive && hasNegative && len(n.entries) == 2 {
		up, err := positive.outcome("kind: positive")
		if err != nil {
			return k, err
		}
		down, err := negative.outcome("kind: negative")
		below := &condition{test: "quantity", negative: true}
		return kinds{bySign: true, rules: []kindRule{{when: below, is: down}, {is: up}}}, err
	}
	return c.kindValues(n)
}

func (c *compiler) kindValues(n node) (k kinds, err error) {
	column, ok := n.get("column")
	values, also := n.get("values")
	otherwise, has := n.get("otherwise")
	wanted := 2
	if has {
		wanted++
	}
	if !ok || !also || len(n.entries) != wanted || values.kind != object || len(values.entries) == 0 {
		return k, n.errorf("kind: a word is expected (%s), or {positive: receipt, negative: issue}, or {column: type, values: {IN: receipt, OUT: issue}, otherwise: leave_out}, or a list of {when: ..., is: ...}",
			strings.Join(outcomes[receipt:], ", "))
	}
	if k.index, err = c.named(column, "kind: column"); err != nil {
		return k, err
	}
	k.source, k.values = column.text, map[string]outcome{}
	for _, e := range values.entries {
		if k.values[e.name], err = e.value.outcome("kind: values: " + e.name); err != nil {
			return k, err
		}
	}
	if has {
		k.otherwise, err = otherwise.outcome("kind: otherwise")
	}
	return k, err
}

func (c *compiler) kindRule(n node) (r kindRule, err error) {
	if err := n.known("kind"); err != nil {
		return r, err
	}
	is, ok := n.get("is")
	when, has := n.get("when")
	if len(n.entries) > 2 || !ok || !has && len(n.entries) > 1 {
		return r, n.errorf("kind: each rule of a list is {when: condition, is: word}, the last one may be without when")
	}
	if r.is, err = is.outcome("kind: is"); err != nil || !has {
		return r, err
	}
	test, err := c.condition(when, "kind: when")
	r.when = &test
	return r, err
}
