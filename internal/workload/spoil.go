package workload

import (
	"slices"
	"strings"

	"amends/internal/ledger"
	"amends/internal/wire"
)

// junk gives a record of another schema members that nobody may look at.
func (d *draft) junk(r *Rand) {
	if r.Percent(30) {
		d.breakMember(r)
	}
	if r.Percent(30) {
		d.breakValue(r)
	}
}

// Syntax faults (S3 order 2) by what replaces a value, what follows it, and what is added as its last member.
var (
	wholeTexts    = []string{"", " ", "[]", "null", `"x"`, "1", "true", "{}", "{", "}", "'", "\x00", "{]", "[}", "{,}", "{\"schema\":1", "\xff\xfe{\x00}\x00"}
	trailingTexts = []string{"x", "{}", "null", ",", "\x00", "]", "}", "//", "\u00a0", "\v"}
	badEncodings  = []string{"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\x80"}
	badMembers    = []string{
		`"schema":1`, `"s\u0063hema":1`, `"x":1,"x":2`, `"x":1,"\u0078":2`, `"x":{"a":1,"a":1}`, `"x":[{"a":{"b":1,"\u0062":2}}]`, // a name twice
		`"x":"\ud800"`, `"x":"\udc00"`, `"x":"\ud800\u0041"`, `"x":"\ud83d\ud83d"`, `"\ud800":1`, `"x":"\udfff\ud800"`, // unpaired surrogates
		"\"x\":\"\x01\"", "\"x\":\"\n\"", `"x":"\x41"`, `"x":"\u12"`, `"x":"\u12g4"`, `"x":"\u`, `"x":"\`, `"x":"\U0041"`, // strings
		`"x":01`, `"x":+1`, `"x":.5`, `"x":1.`, `"x":1e`, `"x":-`, `"x":1e+`, `"x":00`, `"x":0x1`, `"x":NaN`, `"x":--1`, // numbers
		`"x":nul`, `"x":True`, `"x":nulll`, `"x"`, `"x":`, `"x" 1`, `x:1`, `'x':1`, `"x":[1,]`, `"x":[1 2]`, `"x":{"a":1,}`, `"x":{1:1}`, `"x":1,`, `"x":[`, `/**/"x":1`,
	}
	badSchemas = []string{`"1"`, "null", "1.0", "-1", "1e0", "true", "[1]", "-0", "{}", "1E0", "01"}
)

// breakSyntax adds a fault of S3 order 2.
func (d *draft) breakSyntax(r *Rand) {
	switch r.Below(9) {
	case 0:
		d.text(func([]byte) []byte { return nil })
	case 1:
		d.text(func([]byte) []byte { return []byte(pick(r, wholeTexts)) })
	case 2:
		d.text(func(b []byte) []byte { return b[:r.Below(max(len(b), 1))] })
	case 3:
		d.text(func(b []byte) []byte { return append(b, pick(r, trailingTexts)...) })
	case 4:
		d.text(func(b []byte) []byte { return append([]byte("\ufeff"), b...) })
	case 5:
		d.text(func(b []byte) []byte { return slices.Insert(b, r.Below(len(b)+1), []byte(pick(r, badEncodings))...) })
	case 6, 7:
		last := pick(r, badMembers)
		if r.Percent(10) {
			n := ledger.MaxNesting + pick(r, []int{0, 0, 1, 1000})
			last = `"x":` + strings.Repeat("[", n) + strings.Repeat("]", n)
		}
		d.text(func(b []byte) []byte { return append(append(b[:len(b)-1], ','), last+"}"...) })
	case 8:
		if d.drop("schema"); r.Percent(80) {
			d.set("schema", pick(r, badSchemas))
		}
	}
}

// Member faults (S3 order 4).
var (
	unknownMembers = []string{"x", "", "Quantity", "quantity ", "TXN_ID", "txnid", "schema_version", "\x00", "Schema", "ſtate", "comment"}
	wrongTexts     = []string{"null", "5", "true", "[]", "{}", "[\"a\"]", "1.5", "false"}
	wrongNumbers   = []string{"null", `"5"`, "true", "[]", "{}", "-1", "-0", "1.5", "1.0", "1e2", "1E0", "0.0", "-9223372036854775809", "1e400"}
)

// breakMember adds a fault of S3 order 4 and leaves the schema alone.
func (d *draft) breakMember(r *Rand) {
	name := d.fields[r.Below(len(d.fields))].name
	for name == "schema" {
		name = pick(r, []string{"state", "txn_id", "revision", "item", "location"})
	}
	switch state := d.state(); {
	case state != "" && r.Percent(30):
		d.drop(name)
	case state == "cancelled" && r.Percent(30):
		d.set(pick(r, []string{"day", "kind"}), `"receipt"`)
	case r.Percent(50):
		d.set(pick(r, unknownMembers), pick(r, []string{"1", "null", `""`, "{}"}))
	case name == "revision" || name == "quantity":
		d.set(name, pick(r, wrongNumbers))
	default:
		d.set(name, pick(r, wrongTexts))
	}
}

// state returns the state of a draft where it is one of S3.
func (d *draft) state() string {
	for _, f := range d.fields {
		if s, _ := unquote(f.value); f.name == "state" && (s == "active" || s == "cancelled") {
			return s
		}
	}
	return ""
}

// Value faults (S3 order 5).
var (
	badStates    = []string{`"foo"`, `"ACTIVE"`, `""`, `"Cancelled"`, `"active "`, `"canceled"`, `"\u0000active"`}
	badKinds     = []string{`"Receipt"`, `""`, `"transfer"`, `"count"`, `"opening count"`, `"issue\u0000"`}
	badDays      = []string{`"2026-02-29"`, `"2026-13-01"`, `"2026-00-10"`, `"2026-01-00"`, `"2026-04-31"`, `"0000-12-31"`, `"2026-1-01"`, `""`, `"1900-02-29"`, `"10000-01-01"`, `" 2026-01-01"`, `"2026-01-01T00:00:00Z"`, `"2026/01/01"`, `"２０２６-01-01"`, `"+026-01-01"`}
	badRevisions = []string{"0", "9223372036854775808", "18446744073709551616", "327267367867168100000"}
)

// breakValue adds a fault of S3 order 5.
func (d *draft) breakValue(r *Rand) {
	active := d.state() == "active"
	switch n := r.Below(7); {
	case n == 0:
		d.set("state", pick(r, badStates))
		for _, name := range []string{"txn_id", "item", "day", "kind", "quantity"} { // no absent member counts as missing now
			if r.Percent(15) {
				d.drop(name)
			}
		}
	case n == 1 && active:
		d.set("kind", pick(r, badKinds))
	case n == 2 && active:
		d.set("day", pick(r, badDays))
	case n == 3 && active:
		d.set("quantity", pick(r, badRevisions[1:]))
	case n == 4 && active:
		d.set("kind", pick(r, []string{`"receipt"`, `"issue"`}))
		d.set("quantity", "0")
	case n == 5:
		d.set("revision", pick(r, badRevisions))
	default:
		c := pick(r, []string{"x", "é", "€", "😀"})
		long := strings.Repeat(c, ledger.MaxIdentifierBytes/len(c)+1)
		d.set(pick(r, []string{"txn_id", "item", "location"}), pick(r, []string{`""`, `"` + long + `"`}))
	}
}

// breakKey adds a fault of S3 order 8: the broker key is none, or not that of k.
func (d *draft) breakKey(r *Rand, k ledger.StockKey) {
	item, location := wire.AppendString(nil, k.Item), wire.AppendString(nil, k.Location)
	right := string(wire.AppendKey(nil, k))
	other := ledger.StockKey{Item: k.Item + "'", Location: k.Location}
	if len(other.Item) > ledger.MaxIdentifierBytes {
		other.Item = "'"
	}
	if variant := r.Below(20); variant > 0 {
		d.key = []byte([]string{
			"", "null", "x", "{}", "[]", right + "x", right + right, "\ufeff" + right, right[:len(right)-1], right[:len(right)-1] + "\xff}",
			string(wire.AppendKey(nil, other)), string(wire.AppendKey(nil, ledger.StockKey{Item: k.Location + "?", Location: k.Item})),
			`{"item":` + string(item) + `}`, `{"location":` + string(location) + `}`, `{"item":1,"location":` + string(location) + `}`,
			right[:len(right)-1] + `,"x":"y"}`, right[:len(right)-1] + `,"\u0069tem":` + string(item) + `}`,
			`{"Item":` + string(item) + `,"location":` + string(location) + `}`, `{"item":` + string(item) + `,"location":"\ud800"}`, k.Item,
		}[variant-1])
		return
	}
	d.key = nil
}
