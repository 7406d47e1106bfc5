package mapping

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"amends/internal/ledger"
	"amends/internal/tabular"
)

// least is a mapping that maps every row of sku,wh,id,n,d to a receipt.
const least = `version: 1
item: "{sku}"
location: "{wh}"
txn_id: "{id}"
revision: 1
day: "{d}"
quantity: "{n}"
kind: receipt
`

// with replaces lines of the least mapping, by the name they begin with, and appends those that are new.
func with(lines ...string) string {
	text := least
	for _, l := range lines {
		name, _, _ := strings.Cut(l, ":")
		kept := ""
		for old := range strings.Lines(text) {
			if !strings.HasPrefix(old, name+":") {
				kept += old
			}
		}
		text = kept + l + "\n"
	}
	return text
}

func bound(t *testing.T, text string, scale int, columns ...string) *Mapper {
	t.Helper()
	m, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	b, err := m.Bind(columns, scale)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return b
}

// said writes what rows say, one row a string: records joined by " + ", "out: why" or "bad: why".
func said(t *testing.T, m *Mapper, rows ...string) []string {
	t.Helper()
	var out []string
	for _, r := range rows {
		got, err := m.Map(strings.Split(r, "|"))
		if err != nil {
			t.Fatal(err)
		}
		var records []string
		for _, a := range got.Assertions {
			what := "cancelled"
			if p := a.Payload; p.State == ledger.Active {
				what = fmt.Sprint(p.Day, " ", p.Kind, " ", p.Quantity)
			}
			records = append(records, fmt.Sprintf("%s@%s %s r%d %s", a.Key.Item, a.Key.Location, a.TxnID, a.Revision, what))
		}
		switch {
		case got.Problem != "":
			out = append(out, "bad: "+got.Problem)
		case got.LeftOut != "":
			out = append(out, "out: "+got.LeftOut)
		default:
			out = append(out, strings.Join(records, " + "))
		}
	}
	return out
}

func TestRowsBecomeAssertions(t *testing.T) {
	t.Parallel()
	columns := []string{"sku", "wh", "id", "n", "d", "type"}
	for name, c := range map[string]struct {
		mapping string
		rows    []string
		want    []string
		scale   int
	}{
		"least": {mapping: least, rows: []string{"a|x|7|3|2026-01-02|"}, want: []string{"a@x 7 r1 2026-01-02 receipt 3"}},
		"templates and constants": {mapping: with(`item: "{sku}-{{{type}}}"`, "location: main", `txn_id: "n{id}/{sku}"`),
			rows: []string{"a|x|7|3|2026-01-02|red"}, want: []string{"a-{red}@main n7/a r1 2026-01-02 receipt 3"}},
		"decimals at the namespace's scale": {mapping: with(`quantity: {value: "{n}", decimal: ",", thousands: "."}`), scale: 3,
			rows: []string{"a|x|1|1.234,5|2026-01-02|", "a|x|2|0,001|2026-01-02|", "a|x|3|12,3400|2026-01-02|"},
			want: []string{"a@x 1 r1 2026-01-02 receipt 1234500", "a@x 2 r1 2026-01-02 receipt 1", "a@x 3 r1 2026-01-02 receipt 12340"}},
		"by sign": {mapping: with("kind: {positive: receipt, negative: issue}"),
			rows: []string{"a|x|1|5|2026-01-02|", "a|x|2|-5|2026-01-02|", "a|x|3|0|2026-01-02|"},
			want: []string{"a@x 1 r1 2026-01-02 receipt 5", "a@x 2 r1 2026-01-02 issue 5", `bad: quantity "0" of receipt is 0; quantity: zero: leave_out leaves such rows out`}},
		"by column": {mapping: with("kind: {column: type, values: {IN: receipt, 02: issue, OC: opening_count, CC: closing_count, V: cancelled, '': leave_out}}"),
			rows: []string{"a|x|1|5|2026-01-02|IN", "a|x|2|5|2026-01-02|02", "a|x|3|0|2026-01-02|OC", "a|x|4|7|2026-01-02|CC", "a|x|5|||V", "a|x|6|||", "a|x|7|5|2026-01-02|2"},
			want: []string{"a@x 1 r1 2026-01-02 receipt 5", "a@x 2 r1 2026-01-02 issue 5", "a@x 3 r1 2026-01-02 opening_count 0", "a@x 4 r1 2026-01-02 closing_count 7",
				"a@x 5 r1 cancelled", "out: kind", `bad: column "type" is "2", which is none of the values of kind, and it has no otherwise`}},
		"otherwise": {mapping: with("kind: {column: type, values: {IN: receipt}, otherwise: issue}"),
			rows: []string{"a|x|1|5|2026-01-02|IN", "a|x|2|5|2026-01-02|?"}, want: []string{"a@x 1 r1 2026-01-02 receipt 5", "a@x 2 r1 2026-01-02 issue 5"}},
		"by rules": {mapping: with(`quantity: {value: "{n}", sign: ignore, zero: leave_out}`, "kind: [{when: {column: id, starts_with: C}, is: receipt}, {when: {quantity: negative}, is: issue}, {when: {quantity: positive}, is: issue}]"),
			rows: []string{"a|x|C1|-5|2026-01-02|", "a|x|2|-5|2026-01-02|", "a|x|3|5|2026-01-02|", "a|x|C4|0|2026-01-02|", "a|x|5|0|2026-01-02|"},
			want: []string{"a@x C1 r1 2026-01-02 receipt 5", "a@x 2 r1 2026-01-02 issue 5", "a@x 3 r1 2026-01-02 issue 5", "out: quantity: zero", "bad: no rule of kind holds of the row"}},
		"two columns of quantities": {mapping: with(`quantity: "{n}{type}"`, "kind: [{when: {column: n, empty: false}, is: receipt}, {is: issue}]"),
			rows: []string{"a|x|1|5|2026-01-02|", "a|x|2||2026-01-02|6"}, want: []string{"a@x 1 r1 2026-01-02 receipt 5", "a@x 2 r1 2026-01-02 issue 6"}},
		"cancelled": {mapping: with("cancelled: [{column: type, is: [VOID, DEL]}, {quantity: zero}]"),
			rows: []string{"a|x|1||never|VOID", "a|x|1|0|never|", "a|x|1|4|2026-01-02|x"},
			want: []string{"a@x 1 r1 cancelled", "a@x 1 r1 cancelled", "a@x 1 r1 2026-01-02 receipt 4"}}, // the first condition that holds is enough
		"left out": {mapping: with("leave_out: [{column: type, is_not: [A, B]}, {all: [{column: sku, is: a}, {column: wh, differs_from: id}]}, {column: n, empty: true}]"),
			rows: []string{"a|1|1|5|2026-01-02|C", "a|1|2|5|2026-01-02|A", "b|1|2||2026-01-02|B", "b|1|2|5|2026-01-02|B"},
			want: []string{"out: leave_out 1", "out: leave_out 2", "out: leave_out 3", "b@1 2 r1 2026-01-02 receipt 5"}},
		"revision by column": {mapping: with(`revision: "{type}"`), rows: []string{"a|x|1|5|2026-01-02|3", "a|x|1|5|2026-01-02|", "a|x|1|5|2026-01-02|+1", "a|x|1|5|2026-01-02|0", "a|x|1|5|2026-01-02|9223372036854775808"},
			want: []string{"a@x 1 r3 2026-01-02 receipt 5", `bad: revision "" is not a whole number of 1 to 2^63-1`, `bad: revision "+1" is not a whole number of 1 to 2^63-1`,
				`bad: revision "0" is not a whole number of 1 to 2^63-1`, `bad: revision "9223372036854775808" is not a whole number of 1 to 2^63-1`}},
		"first seen": {mapping: with("revision: first_seen", "leave_out: {column: type, is: no}"),
			rows: []string{"a|x|1|5|2026-01-02|", "a|x|1|6|2026-01-02|", "a|y|1|6|2026-01-02|", "a|x|1|9|2026-01-02|no", "a|x|1|7|2026-01-02|", "ax||1|7|2026-01-02|"},
			want: []string{"a@x 1 r1 2026-01-02 receipt 5", "a@x 1 r2 2026-01-02 receipt 6", "a@y 1 r1 2026-01-02 receipt 6", "out: leave_out 1", "a@x 1 r3 2026-01-02 receipt 7",
				`bad: location "" is not 1 to 512 bytes of text`}},
		"ordinals count every row": {mapping: with(`txn_id: "{id}:{ordinal}"`, "ordinal: {within: id}", "leave_out: {column: type, is: no}"),
			rows: []string{"a|x|1|5|2026-01-02|", "a|x|1|5|2026-01-02|no", "a|x|2|5|2026-01-02|", "b|x|1|5|2026-01-02|"},
			want: []string{"a@x 1:1 r1 2026-01-02 receipt 5", "out: leave_out 1", "a@x 2:1 r1 2026-01-02 receipt 5", "b@x 1:3 r1 2026-01-02 receipt 5"}},
		"revised rows": {mapping: with("revised: {when: {column: type, differs_from: d}, day: \"{type}\"}", `day: {value: "{d}", format: DD.MM.YYYY}`),
			rows: []string{"a|x|1|5|02.01.2026|02.01.2026", "a|x|2|5|02.01.2026|04.01.2026", "a|x|2|5|02.01.2026|2026-01-04"},
			want: []string{"a@x 1 r1 2026-01-02 receipt 5", "a@x 2 r1 2026-01-02 receipt 5 + a@x 2 r2 2026-01-04 receipt 5", `bad: day "2026-01-04" is no date as DD.MM.YYYY`}},
		"revised and first seen": {mapping: with("revised: {when: {column: type, empty: false}, quantity: \"{type}\"}", "revision: first_seen"),
			rows: []string{"a|x|1|5|2026-01-02|6", "a|x|1|7|2026-01-02|"},
			want: []string{"a@x 1 r1 2026-01-02 receipt 5 + a@x 1 r2 2026-01-02 receipt 6", "a@x 1 r3 2026-01-02 receipt 7"}},
		"the highest revision": {mapping: with(`revision: "{id}"`, "revised: {when: {column: type, is: X}, kind: cancelled}"),
			rows: []string{"a|x|9223372036854775807|5|2026-01-02|", "a|x|9223372036854775806|5|2026-01-02|X", "a|x|9223372036854775807|5|2026-01-02|X"},
			want: []string{"a@x 9223372036854775807 r9223372036854775807 2026-01-02 receipt 5",
				"a@x 9223372036854775806 r9223372036854775806 2026-01-02 receipt 5 + a@x 9223372036854775806 r9223372036854775807 cancelled",
				`bad: revision "9223372036854775807" has no next one for the second record of its row`}},
		"revised to cancelled": {mapping: with("revised: {when: {column: type, is: X}, kind: cancelled}"),
			rows: []string{"a|x|1|5|2026-01-02|X"}, want: []string{"a@x 1 r1 2026-01-02 receipt 5 + a@x 1 r2 cancelled"}},
		"faults": {mapping: least, scale: 2, rows: []string{"a|x|1|-5|2026-01-02|", "a|x|1|1.005|2026-01-02|", "a|x|1|1,5|2026-01-02|", "a|x|1||2026-01-02|", "a|x|1|1e3|2026-01-02|",
			"a|x|1|5|2026-02-29|", "a|x|1|5|02.01.2026|", "|x|1|5|2026-01-02|", "a|x||5|2026-01-02|", "a|x|" + strings.Repeat("é", 257) + "|5|2026-01-02|"},
			want: []string{`bad: quantity "-5" is negative, and receipt has none below 0; kind may choose by sign, or quantity have sign: ignore`,
				`bad: quantity "1.005" has more than 2 decimal places, which is the namespace's quantity_scale`,
				`bad: quantity "1,5" is no number with decimal sign '.' and nothing between thousands`, `bad: quantity "" is no number with decimal sign '.' and nothing between thousands`,
				`bad: quantity "1e3" is no number with decimal sign '.' and nothing between thousands`,
				`bad: day "2026-02-29" is no date as YYYY-MM-DD`, `bad: day "02.01.2026" is no date as YYYY-MM-DD`,
				`bad: item "" is not 1 to 512 bytes of text`, `bad: txn_id "" is not 1 to 512 bytes of text`, `bad: txn_id "` + strings.Repeat("é", 60) + `" is not 1 to 512 bytes of text`}},
		"counts are never negative": {mapping: with("kind: closing_count", `quantity: {value: "{n}", sign: ignore}`), rows: []string{"a|x|1|-5|2026-01-02|"},
			want: []string{`bad: quantity "-5" is negative, and closing_count has none below 0; kind may choose by sign, or quantity have sign: ignore`}},
	} {
		if diff := cmp.Diff(c.want, said(t, bound(t, c.mapping, c.scale, columns...), c.rows...)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestMappingsAreRefusedByLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                                     "one YAML document",
		"- a\n":                                                "line 1: names with values",
		"version: 1\n---\nversion: 1\n":                        "this has 2",
		"version: \"1\nitem: x\n":                              "no valid YAML",
		"version: 2\n":                                         "line 1: version: 1 is expected",
		"format: csv\n":                                        "version: 1 is expected",
		"version: 1\nversion: 1\n":                             "already defined",
		"version: 1\nitem:\n":                                  `line 2: "item" has no value`,
		"version: 1\nitem: &a x\nlocation: *a":                 "line 2: anchors",
		"version: 1\nitme: x\n":                                `line 2: unknown name "itme"; known are: version, format`,
		"version: 1\nlocation: x\n":                            "item is missing",
		with("item: [a]"):                                      "line 8: item: one value",
		with(`item: ""`):                                       "line 8: item: is empty",
		with(`item: "{sku"`):                                   "without its partner",
		with(`item: "sku}"`):                                   "without its partner",
		with("kind: sale"):                                     "line 8: kind: one of receipt, issue, opening_count, closing_count, cancelled, leave_out",
		with("kind: {positive: receipt}"):                      "line 8: kind: a word is expected",
		with("kind: {column: a, values: x}"):                   "kind: a word is expected",
		with("kind: {column: a, values: {X: y}}"):              "kind: values: X: one of",
		with("kind: [{is: issue, column: x}]"):                 "each rule of a list",
		with("kind: [{when: {column: a}, is: issue}]"):         "kind: when: a test is expected",
		with("kind: [{is: issue}, {is: receipt}]"):             "line 8: kind: a rule without when holds always",
		with("kind: []"):                                       "line 8: kind: a rule is expected",
		with("day: {format: DD}"):                              "day: value is missing",
		with(`day: {value: "{d}", format: DD.MM.YY}`):          "day: format: ",
		with(`day: {value: "{d}", format: YYYY-MM}`):           "needs YYYY",
		with(`day: {value: "{d}", format: "YYYY*MM-DD"}`):      "behind *",
		with(`day: {value: "{d}", fromat: x}`):                 `day: unknown name "fromat"`,
		with("quantity: {decimal: x}"):                         "quantity: value is missing",
		with(`quantity: {value: "{n}", decimal: x}`):           "quantity: decimal: one of ., ,",
		with(`quantity: {value: "{n}", thousands: "."}`):       "both",
		with(`quantity: {value: "{n}", sign: yes}`):            "quantity: sign: one of",
		with(`quantity: {value: "{n}", zero: 0}`):              "quantity: zero: one of",
		with("leave_out: []"):                                  "a condition is expected",
		with("leave_out: {column: a, is: x, empty: true}"):     "one test is expected, not both is and empty",
		with("leave_out: {is: x}"):                             "is goes with column",
		with("leave_out: {column: a, quantity: zero}"):         "quantity goes without column",
		with("leave_out: {column: a, like: x}"):                `unknown name "like"`,
		with("leave_out: {column: a, starts_with: ''}"):        "starts_with: is empty",
		with("leave_out: {column: a, empty: maybe}"):           "one of true, false",
		with("leave_out: {quantity: small}"):                   "one of negative, positive, zero",
		with("revised: {day: x}"):                              "revised: when",
		with("revised: {when: {column: a, is: x}}"):            "revised: when",
		with("ordinal: {}"):                                    "ordinal: within",
		with("ordinal: {by: x}"):                               `ordinal: unknown name "by"`,
		with("repeats: maybe"):                                 "repeats: one of",
		with("delimiter: '::'"):                                "delimiter",
		with("delimiter: '\"'"):                                "delimiter",
		with("encoding: latin9"):                               "encoding: one of utf-8, windows-1252, iso-8859-1",
		with("header: maybe"):                                  "header: one of true, false",
		with("skip_lines: -1"):                                 "skip_lines",
		with("table: t"):                                       "table: belongs to format: sql-insert",
		with("format: sql-insert"):                             "needs table",
		with("format: sql-insert", "table: t", "header: true"): "header: belongs to format: csv",
		with("columns: {a: b}"):                                "columns: a value or a list",
		strings.Replace(least, "revision: 1\n", "", 1):         "revision is missing",
		strings.Replace(least, "day: \"{d}\"\n", "", 1):        "day is missing",
	} {
		_, err := Parse([]byte(text))
		var bad *Error
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestMappingsMustFitTheColumns(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		with(`item: "{SKU}"`):                                          `item: the file has no column "SKU"; its columns: "sku", "wh", "id", "n", "d", "x", "x"`,
		with(`item: "{x}"`):                                            `item: the file has two columns "x"`,
		with(`txn_id: "{id}:{ordinal}"`):                               `txn_id: the file has no column "ordinal"`,
		with("ordinal: {within: [id, no]}"):                            `ordinal: within: the file has no column "no"`,
		with("leave_out: {column: no, is: x}"):                         `leave_out: the file has no column "no"`,
		with("leave_out: {column: id, differs_from: no}"):              `leave_out: differs_from: the file has no column "no"`,
		with("kind: {column: no, values: {a: issue}}"):                 `kind: column: the file has no column "no"`,
		with(`revised: {when: {column: id, is: x}, quantity: "{no}"}`): `quantity: the file has no column "no"`,
	} {
		m, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		_, err = m.Bind([]string{"sku", "wh", "id", "n", "d", "x", "x"}, 0)
		var bad *Error
		if !errors.As(err, &bad) || bad.Line == 0 || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]tabular.Options{
		least: {Format: tabular.CSV, Encoding: tabular.UTF8, Delimiter: ',', Quoted: true, Header: true, Backslash: true},
		with("encoding: windows-1252", "delimiter: tab", "quoting: none", "header: false", "columns: [a, 1]", "skip_lines: 2", "trim: true"): {Format: tabular.CSV, Encoding: tabular.Windows1252,
			Delimiter: '\t', Columns: []string{"a", "1"}, SkipLines: 2, Trim: true, Backslash: true},
		with("format: sql-insert", "table: moves", "backslash_escapes: false"): {Format: tabular.SQL, Encoding: tabular.UTF8, Table: "moves", Delimiter: ',', Quoted: true, Header: true},
		with("delimiter: '€'"): {Format: tabular.CSV, Encoding: tabular.UTF8, Delimiter: '€', Quoted: true, Header: true, Backslash: true},
	} {
		m, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, m.Options()); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	m, err := Parse([]byte(with("repeats: allow")))
	if err != nil || !m.AllowsRepeats() {
		t.Errorf("repeats: %v", err)
	}
}

func TestDates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format, text, want string // "" where it is refused
	}{
		{"YYYY-MM-DD", "2026-01-31", "2026-01-31"}, {"YYYY-MM-DD", "2026-1-31", ""}, {"YYYY-MM-DD", "2026-02-29", ""}, {"YYYY-MM-DD", "2024-02-29", "2024-02-29"},
		{"YYYY-MM-DD", "2026-01-31 ", ""}, {"YYYY-MM-DD", "", ""}, {"YYYYMMDD", "20260131", "2026-01-31"}, {"YYYYMMDD", "2026131", ""},
		{"DD.MM.YYYY", "31.01.2026", "2026-01-31"}, {"D.M.YYYY", "1.2.2026", "2026-02-01"}, {"D.M.YYYY", "01.02.2026", "2026-02-01"}, {"D.M.YYYY", "001.2.2026", ""},
		{"M/D/YYYY", "2/1/2026", "2026-02-01"}, {"M/D/YYYY", "13/1/2026", ""}, {"DD-MMM-YYYY", "05-MAY-2026", "2026-05-05"}, {"D MMM YYYY", "5 may 2026", "2026-05-05"},
		{"D MMM YYYY", "5 mai 2026", ""}, {"D MMM YYYY", "5 m", ""}, {"YYYY-MM-DD hh:mm:ss", "2010-12-01 08:26:00", "2010-12-01"}, {"YYYY-MM-DD hh:mm:ss", "2010-12-01 24:00:00", ""},
		{"YYYY-MM-DD hh:mm:ss", "2010-12-01 08:26", ""}, {"YYYY-MM-DDThh:mm:ssZ", "2010-12-01T08:26:59Z", "2010-12-01"}, {"YYYY-MM-DD*", "2010-12-01T08:26:59.5+02:00", "2010-12-01"},
		{"YYYY-MM-DD*", "2010-12-01", "2010-12-01"}, {"D.M.YYYY h", "", "?"}, {"YYYY-MM-DD DD", "", "?"}, {"MM MMM D YYYY", "", "?"}, {"yyyy-MM-DD", "", "?"},
	} {
		f, err := parseFormat(c.format)
		if (err != nil) != (c.want == "?") {
			t.Errorf("%s: %v", c.format, err)
		}
		if err != nil {
			continue
		}
		day, ok := f.parse(c.text)
		if ok != (c.want != "") || ok && day.String() != c.want {
			t.Errorf("%q as %s: %v %v, want %q", c.text, c.format, day, ok, c.want)
		}
	}
}

// Every number that a rational says exactly is read as that many units, and no other.
func TestQuantitiesAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.IntRange(0, 9).Draw(t, "scale")
		q := quantityOf{decimal: rapid.SampledFrom([]byte{'.', ','}).Draw(t, "decimal")}
		whole := rapid.StringMatching(`[0-9]{1,20}`).Draw(t, "whole")
		fraction := rapid.StringMatching(`[0-9]{0,4}0{0,8}`).Draw(t, "fraction")
		text := whole
		if rapid.Bool().Draw(t, "grouped") {
			q.group = rapid.SampledFrom([]string{" ", "'", "\u00a0"}).Draw(t, "group")
			for i := len(text) - 3; i > 0; i -= 3 {
				text = text[:i] + q.group + text[i:]
			}
		}
		exact := whole
		if fraction != "" {
			text, exact = text+string(q.decimal)+fraction, exact+"."+fraction
		}
		sign := rapid.SampledFrom([]string{"", "-", "+"}).Draw(t, "sign")
		n, bad := q.parse(sign+text, scale)
		r, ok := new(big.Rat).SetString(exact)
		if !ok {
			t.Fatal(exact)
		}
		r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
		fits := r.IsInt() && r.Num().IsInt64()
		if fits != (bad == "") || fits && (n.units != r.Num().Int64() || n.negative != (sign == "-")) {
			t.Fatalf("%q at scale %d: %+v %q, want %v", sign+text, scale, n, bad, r)
		}
	})
}

func TestNumbersThatAreNone(t *testing.T) {
	t.Parallel()
	q := quantityOf{decimal: '.', group: ","}
	for _, text := range []string{"", "-", "+", ".", "5.", ".5", "1,23", "12,3456", ",123", "1,,234", "1,234.5,6", "1.2.3", "--1", "1 ", " 1", "٣", "0x1", "1_0", "Inf", "1234,567"} {
		if n, bad := q.parse(text, 3); bad == "" {
			t.Errorf("%q is read as %+v", text, n)
		}
	}
	for text, want := range map[string]int64{"1,234.5": 1234500, "1234.5": 1234500, "0": 0, "007": 7000, "1,234,567": 1234567000} {
		if n, bad := q.parse(text, 3); bad != "" || n.units != want {
			t.Errorf("%q: %+v %s", text, n, bad)
		}
	}
}

func TestCounterIsBounded(t *testing.T) {
	t.Parallel()
	c := newCounter()
	c.most = 2
	for _, step := range []struct {
		text string
		want uint32
	}{{"a", 1}, {"b", 1}, {"a", 2}} {
		if n, err := c.next(1, step.text); n != step.want || err != nil {
			t.Errorf("%s: %d %v", step.text, n, err)
		}
	}
	if _, err := c.next(1, "c"); !errors.Is(err, ErrTooMany) {
		t.Errorf("one past the bound: %v", err)
	}
	m := bound(t, with("revision: first_seen"), 0, "sku", "wh", "id", "n", "d")
	m.seen.most = 1
	for i, want := range []error{nil, nil, ErrTooMany} {
		if _, err := m.Map([]string{"a", "x", []string{"1", "1", "2"}[i], "5", "2026-01-02"}); !errors.Is(err, want) {
			t.Errorf("row %d: %v", i, err)
		}
	}
}

// What texts are cannot be shifted from one to the next.
func TestHashesTellTextsApart(t *testing.T) {
	t.Parallel()
	a, b := Hash{}, []byte(nil)
	a, b = HashOf(b, "ab", "c")
	other, _ := HashOf(b, "a", "bc")
	if a == other {
		t.Error("two pairs of texts have one hash")
	}
}

// A tally is a map.
func TestTallyIsAMap(t *testing.T) {
	t.Parallel()
	var tally Tally
	want := map[Hash]uint32{}
	var buffer []byte
	for i := range 300_000 {
		var h Hash
		h, buffer = HashOf(buffer, fmt.Sprint(i*7919%100_000))
		if i%3 == 0 {
			h[12] = 0 // a crowded shard
		}
		if n := tally.At(h); n != nil {
			*n++
		} else {
			tally.Put(h, 1)
		}
		want[h]++
	}
	slots := 0
	for i := range tally.shards {
		slots += len(tally.shards[i].slots)
	}
	if tally.Len() != len(want) || slots > tally.Len()*16/10 {
		t.Errorf("%d entries in %d slots, want %d", tally.Len(), slots, len(want))
	}
	for h, n := range want {
		if got := tally.At(h); got == nil || *got != n {
			t.Fatalf("%x: %v, want %d", h, got, n)
		}
	}
	if tally.At(Hash{1}) != nil {
		t.Error("a hash that was never put is there")
	}
}

// A mapping file is refused or maps any row without a panic, to valid records only.
func FuzzMapping(f *testing.F) {
	f.Add([]byte(least), "a|x|1|5|2026-01-02")
	f.Add([]byte(with("kind: {positive: receipt, negative: issue}", "revision: first_seen", "leave_out: {column: id, is: x}")), "a|x|1|-5|2026-01-02")
	f.Add([]byte(with("kind: [{when: {quantity: zero}, is: cancelled}, {is: issue}]", "ordinal: {within: [id]}", `txn_id: "{id}:{ordinal}"`)), "a|x|1|0|2026-01-02")
	f.Add([]byte(with(`day: {value: "{d}", format: "D MMM YYYY*"}`, `revised: {when: {column: id, differs_from: n}, quantity: "{id}"}`)), "a|x|1|0|2 jan 2026")
	f.Fuzz(func(t *testing.T, text []byte, row string) {
		m, err := Parse(text)
		if err != nil {
			var bad *Error
			if !errors.As(err, &bad) {
				t.Fatal(err)
			}
			return
		}
		b, err := m.Bind([]string{"sku", "wh", "id", "n", "d"}, 2)
		if err != nil {
			return
		}
		fields := strings.Split(strings.ToValidUTF8(row, "?"), "|")
		for len(fields) < 5 {
			fields = append(fields, "")
		}
		for range 2 {
			r, err := b.Map(fields)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range r.Assertions {
				p := a.Payload
				if !ledger.ValidIdentifier(a.TxnID) || !ledger.ValidIdentifier(a.Key.Item) || a.Revision < 1 || p.State == ledger.Active && (p.Quantity < 0 || p.Day < ledger.MinDay) {
					t.Fatalf("%+v", a)
				}
			}
		}
	})
}
