package tabular

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"amends/internal/absent"
)

func plainCSV() Options {
	return Options{Format: CSV, Encoding: UTF8, Delimiter: ',', Quoted: true, Header: true}
}

// with is plainCSV with a change.
func with(change func(*Options)) Options {
	o := plainCSV()
	change(&o)
	return o
}

func dumpOf(table string) Options {
	return Options{Format: SQL, Encoding: UTF8, Table: table, Backslash: true}
}

// read returns every row as "line: a|b" or "line: problem".
func read(t *testing.T, text string, o Options) ([]string, []string, error) {
	t.Helper()
	r, err := NewReader(strings.NewReader(text), o)
	if err != nil {
		var bad *Error
		if !errors.As(err, &bad) {
			t.Errorf("%q: %v is no *Error", text, err)
		}
		return nil, nil, err
	}
	var got []string
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Columns(), got, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		if p := row.Problem; p != nil {
			got = append(got, fmt.Sprintf("%d: problem at %d:%d: %s", row.Line, p.Line, p.Column, p.Reason))
			continue
		}
		got = append(got, fmt.Sprintf("%d: %s", row.Line, strings.Join(row.Fields, "|")))
	}
}

func TestCSVRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		options Options
		want    []string
		columns []string
	}{
		"plain":             {"a,b\n1,2\n3,4\n", plainCSV(), []string{"2: 1|2", "3: 3|4"}, nil},
		"no end of line":    {"a,b\n1,2", plainCSV(), []string{"2: 1|2"}, nil},
		"Windows line ends": {"a,b\r\n1,2\r\n\r\n3,\r\n", plainCSV(), []string{"2: 1|2", "4: 3|"}, nil},
		"byte order mark":   {"\ufeffa,b\n1,2\n", plainCSV(), []string{"2: 1|2"}, nil},
		"quotes":            {"a,b\n\"x, \"\"y\"\"\nz\",2\n3,4\n", plainCSV(), []string{"2: x, \"y\"\nz|2", "4: 3|4"}, nil},
		"semicolons":        {"a;b\n1,5;2\n", with(func(o *Options) { o.Delimiter = ';' }), []string{"2: 1,5|2"}, nil},
		"tabs without quotes": {"a\tb\n5\" pipe\tx\r\n\n\"\ty\n", with(func(o *Options) { o.Delimiter, o.Quoted = '\t', false }),
			[]string{"2: 5\" pipe|x", "4: \"|y"}, nil},
		"no header":        {"1,2\n3,4\n", with(func(o *Options) { o.Header = false }), []string{"1: 1|2", "2: 3|4"}, []string{"1", "2"}},
		"names given":      {"1,2\n", with(func(o *Options) { o.Header, o.Columns = false, []string{"x", "y"} }), []string{"1: 1|2"}, []string{"x", "y"}},
		"header as wanted": {"a,b\n1,2\n", with(func(o *Options) { o.Columns = []string{"a", "b"} }), []string{"2: 1|2"}, nil},
		"lines before":     {"Report, made today\n\nof \"x\na,b\n1,2\n", with(func(o *Options) { o.SkipLines = 3 }), []string{"5: 1|2"}, nil},
		"trimmed":          {" a ,b\n 1 , \"2 \"\n", with(func(o *Options) { o.Trim = true }), []string{"2: 1|2"}, nil},
		"trimmed tabs":     {"a\tb\n1\t\n\t2 \n 3\t\" 4\"\n", with(func(o *Options) { o.Delimiter, o.Trim = '\t', true }), []string{"2: 1|", "3: |2", "4: 3|4"}, nil},
		"not trimmed":      {"a,b\n 1 ,2 \n", plainCSV(), []string{"2:  1 |2 "}, nil},
		"only a header":    {"a,b\n", plainCSV(), nil, nil},
		"fields": {"a,b\n1\n1,2,3\n4,5\n", plainCSV(),
			[]string{"2: problem at 2:0: the row has 1 field, the file has 2 columns", "3: problem at 3:0: the row has 3 fields, the file has 2 columns", "4: 4|5"}, nil},
		"a bare quote": {"a,b\n1,x\"y\n3,4\n", plainCSV(),
			[]string{"2: problem at 2:4: a quote within a field that does not begin with one; quotes of such files are doubled, or say quoting: none", "3: 3|4"}, nil},
		"text behind a quote": {"a,b\n1,\"x\"y\n3,4\n", plainCSV(),
			[]string{"2: problem at 2:5: a quote is not closed, or something follows the closing one", "3: 3|4"}, nil},
		"an open quote": {"a,b\n1,2\n3,\"x\ny\nz\n", plainCSV(),
			[]string{"2: 1|2", "3: problem at 3:0: a quote is opened in this row and not closed by line 5"}, nil},
	} {
		columns, got, err := read(t, c.text, c.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.columns == nil {
			c.columns = []string{"a", "b"}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(c.columns, columns); diff != "" {
			t.Errorf("%s: columns %s", name, diff)
		}
	}
}

func TestFilesThatAreNotWhatTheOptionsSay(t *testing.T) {
	t.Parallel()
	namedDump := dumpOf("x")
	namedDump.Columns = []string{"a", "b"}
	for name, c := range map[string]struct {
		text, want string
		options    Options
	}{
		"empty":           {"", "the file has no rows", plainCSV()},
		"UTF-16":          {"\xff\xfea\x00,\x00b\x00\n\x00", "UTF-16", plainCSV()},
		"UTF-16 unmarked": {"a\x00,\x00b\x00\n\x00", "UTF-16", plainCSV()},
		"old Mac":         {"a,b\r1,2\r", "carriage return", plainCSV()},
		"a large old Mac": {"a,b" + strings.Repeat("\r1,2", MaxRow), "carriage returns alone", plainCSV()},
		"other header":    {"a,c\n1,2\n", `the header is ["a" "c"], and the mapping expects ["a" "b"]`, with(func(o *Options) { o.Columns = []string{"a", "b"} })},
		"mark of UTF-8":   {"\ufeffa,b\n", "byte order mark", with(func(o *Options) { o.Encoding = Windows1252 })},
		"header's bytes":  {"a,\xe9\n", "name of column 2 is not utf-8", plainCSV()},
		"too short":       {"a,b\n", "skip_lines is 3", with(func(o *Options) { o.SkipLines = 3 })},
		"no such table":   {"INSERT INTO t VALUES (1);", "INSERT INTO x", dumpOf("x")},
		"other names":     {"INSERT INTO x (b, a) VALUES (1, 2);", `line 1: the statement names columns ["b" "a"], and the mapping expects ["a" "b"]`, namedDump},
		"broken dump":     {"INSERT INTO x VALUES ('a", "line 1: a quote is opened", dumpOf("x")},
	} {
		if _, _, err := read(t, c.text, c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text     string
		encoding Encoding
		want     []string
	}{
		"windows-1252": {"a,b\nB\xfccher \x80,\x9f\n", Windows1252, []string{"2: Bücher €|Ÿ"}},
		"iso-8859-1":   {"a,b\nB\xfccher,\x9f\n", Latin1, []string{"2: Bücher|\u009f"}},
		"a hole":       {"a,b\n1,x\x81\n3,4\n", Windows1252, []string{`2: problem at 2:0: column "b" holds a byte that windows-1252 does not have, after "x"`, "3: 3|4"}},
		"mixed": {"a,b\nBücher,1\nB\xfccher,2\nx,3\n", UTF8, []string{"2: Bücher|1",
			`3: problem at 3:0: column "a" holds byte 0xFC after "B": no UTF-8; if the whole file is another encoding, name it in the mapping (encoding: windows-1252), else write this line as UTF-8`, "4: x|3"}},
		"mixed, in a field of lines": {"a,b\n\"x\ny\xe9\n\",2\n", UTF8, []string{
			`2: problem at 3:0: column "a" holds byte 0xE9 after "x\ny": no UTF-8; if the whole file is another encoding, name it in the mapping (encoding: windows-1252), else write this line as UTF-8`}},
	} {
		o := plainCSV()
		o.Encoding = c.encoding
		_, got, err := read(t, c.text, o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// UTF-8 that is read byte by byte shows.
func TestForeignTextIsNoticed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"Bücher": true, "€ 5": true, "£": true, "日本": true, "plain": false, "B\xfccher": false, "\xc3": false, "\xe9t\xe9": false, "\xc3x\xa9": false} {
		o := plainCSV()
		o.Encoding = Windows1252
		r, err := NewReader(strings.NewReader("a\n"+text+"\n"), o)
		if err != nil {
			t.Fatal(err)
		}
		row, err := r.Next()
		if err != nil || row.Problem != nil || row.Foreign != want {
			t.Errorf("%q: %+v %v", text, row, err)
		}
	}
}

func TestDumpRows(t *testing.T) {
	t.Parallel()
	const text = "-- INSERT INTO `t` VALUES (0);\n" +
		"/* INSERT INTO t VALUES (0); ' */ # it's\n" +
		"INSERT INTO `other` (`a`) VALUES ('x;) INSERT INTO t VALUES (9)\\'');\n" +
		"CREATE TABLE t (a int DEFAULT 'it''s; INSERT INTO t VALUES (8)');\n" +
		"INSERT INTO `db`.`t` (`a`, `b`) VALUES (1, 'x'), (-2.50,\n'it''s\\n\\'y\\''),\n\t(NULL, \"z\");\n" +
		"insert ignore into t (a, b) values (+3, '') ON DUPLICATE KEY UPDATE a = (4);\n" +
		"INSERT INTO t (b, a) VALUES (5, 6);\n" +
		"INSERT INTO t (a, b) VALUES (now(), 'x'), (, 1), ('a' || 'b', 2), (7), (8, 9)"
	columns, got, err := read(t, text, dumpOf("t"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"5: 1|x", "5: -2.50|it's\n'y'", "7: |z", "8: 3|",
		`9: problem at 9:0: the statement names columns ["b" "a"], the first one ["a" "b"]`,
		`10: problem at 10:0: value 1 of the row is an expression ("now"); only strings, numbers and NULL are read`,
		"10: problem at 10:0: value 1 of the row is empty; only strings, numbers and NULL are read",
		`10: problem at 10:0: value 1 of the row is an expression ("|"); only strings, numbers and NULL are read`,
		"10: problem at 10:0: the row has 1 field, the file has 2 columns", "10: 8|9"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, columns); diff != "" {
		t.Error(diff)
	}
}

func TestDumpVariants(t *testing.T) {
	t.Parallel()
	ansi := dumpOf("t")
	ansi.Backslash = false
	named := dumpOf("t")
	named.Columns = []string{"x", "y"}
	for name, c := range map[string]struct {
		text    string
		options Options
		columns []string
		want    []string
	}{
		"no backslashes":  {`INSERT INTO "public"."t" ("a") VALUES ('C:\'), ('b');`, ansi, []string{"a"}, []string{`1: C:\`, "1: b"}},
		"numbered":        {"INSERT INTO t VALUES (1,2);", dumpOf("t"), []string{"1", "2"}, []string{"1: 1|2"}},
		"named":           {"INSERT INTO t VALUES (1,2);", named, []string{"x", "y"}, []string{"1: 1|2"}},
		"named as wanted": {"INSERT INTO t (x, y) VALUES (1,2);", named, []string{"x", "y"}, []string{"1: 1|2"}},
		"named at first only": {"INSERT INTO t (x, y) VALUES (1,2);\nINSERT INTO t VALUES (3,4);\nINSERT INTO t (x, y) VALUES (5,6);", dumpOf("t"), []string{"x", "y"},
			[]string{"1: 1|2", `2: problem at 2:0: the statement names no columns, the first one ["x" "y"]; columns: in the mapping says that these are the table's, in its order`, "3: 5|6"}},
		"named by the mapping": {"INSERT INTO t (x, y) VALUES (1,2);\nINSERT INTO t VALUES (3,4);", named, []string{"x", "y"}, []string{"1: 1|2", "2: 3|4"}},
		"cut off": {"INSERT INTO t VALUES (1,2),\n(3,'4", dumpOf("t"), []string{"1", "2"},
			[]string{"1: 1|2", "2: problem at 2:0: a quote is opened here and not closed; nothing after it was read"}},
		"a blob of another table":            {"INSERT INTO o VALUES ('" + strings.Repeat("x", 3*MaxRow) + "');\nINSERT INTO t VALUES (1,2);", dumpOf("t"), []string{"1", "2"}, []string{"2: 1|2"}},
		"a comment that begins like its end": {"/*/ INSERT INTO t VALUES (0); */INSERT INTO t VALUES (1,2);", dumpOf("t"), []string{"1", "2"}, []string{"1: 1|2"}},
		"a long comment":                     {"/*" + strings.Repeat("x", 3*MaxRow) + "**/INSERT INTO t VALUES (1,2);", dumpOf("t"), []string{"1", "2"}, []string{"1: 1|2"}},
	} {
		columns, got, err := read(t, c.text, c.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.columns, columns); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// endless repeats a text for ever.
type endless struct{ text string }

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.text)
	}
	return n, nil
}

// A row without end is given up after MaxRow, whatever the size of the file.
func TestARowWithoutEndIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		head    string
		options Options
	}{
		"quote":        {"a,b\n1,2\n3,\"", plainCSV()},
		"dump's quote": {"INSERT INTO t VALUES (1,2),\n\n(3,'", dumpOf("t")},
		"dump's row":   {"INSERT INTO t VALUES (1,2),\n\n(", dumpOf("t")},
	} {
		r, err := NewReader(io.MultiReader(strings.NewReader(c.head), endless{"x,\n"}), c.options)
		if err != nil {
			t.Fatal(err)
		}
		if row, err := r.Next(); err != nil || row.Problem != nil {
			t.Errorf("%s: %+v %v", name, row, err)
		}
		row, err := r.Next()
		if err != nil || row.Problem == nil || (row.Problem.Line != 3 || row.Line != 3) && name != "dump's row" || !strings.Contains(row.Problem.Reason, "1 MiB") {
			t.Errorf("%s: %+v %v", name, row.Problem, err)
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: reading goes on: %v", name, err)
		}
	}
	limit := plainCSV()
	limit.Quoted = false
	_, got, err := read(t, "a,b\n1,"+strings.Repeat("x", 3*MaxRow)+"\n3,4\n", limit)
	if diff := cmp.Diff([]string{"2: problem at 2:0: a row of more than 1 MiB", "3: 3|4"}, got); diff != "" || err != nil {
		t.Errorf("%s %v", diff, err)
	}
}

// failing fails after its text.
type failing struct{ text *strings.Reader }

var errBroken = errors.New("broken")

func (f failing) Read(p []byte) (int, error) {
	n, err := f.text.Read(p)
	if errors.Is(err, io.EOF) {
		err = errBroken
	}
	return n, err
}

func TestErrorsOfTheReaderBeneath(t *testing.T) {
	t.Parallel()
	unquoted := plainCSV()
	unquoted.Quoted = false
	for text, o := range map[string]Options{"a,b\n1,2\n": plainCSV(), "INSERT INTO t VALUES (1),": dumpOf("t"), "a,b\n3,4\n": unquoted} {
		r, err := NewReader(failing{strings.NewReader(text)}, o)
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, errBroken) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What encoding/csv writes is read back, with the line of every row.
func TestWrittenCSVIsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.StringOfN(rapid.RuneFrom([]rune("ab,;\"\n é日 \t'")), 0, 6, -1)
		rows := rapid.SliceOfN(rapid.SliceOfN(field, 3, 3), 1, 8).Draw(t, "rows")
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.UseCRLF = rapid.Bool().Draw(t, "crlf")
		if err := w.WriteAll(append([][]string{{"a", "b", "c"}}, rows...)); err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(&b, plainCSV())
		if err != nil {
			t.Fatal(err)
		}
		line := int64(2)
		for _, want := range rows {
			row, err := r.Next()
			if err != nil || row.Problem != nil {
				t.Fatalf("%v %v", row.Problem, err)
			}
			if row.Line != line || !cmp.Equal(want, row.Fields) {
				t.Fatalf("line %d %q, want line %d %q", row.Line, row.Fields, line, want)
			}
			line += int64(strings.Count(strings.Join(want, ""), "\n")) + 1
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	})
}

// Whatever the bytes, every row has all columns and text, or a problem at a line of its own or a later one, and lines
// never go back.
func FuzzReader(f *testing.F) {
	for _, text := range []string{"a,b\n1,2\n", "\ufeffa;b\r\n\"1\n\";2\r\n", "a\tb\n\xe9\t\"\n", "INSERT INTO `t` (`a`) VALUES (1, 'x\\''), (NULL);-- x\n", "/*'*/ INSERT INTO t VALUES (-1.5,\"x\");"} {
		f.Add([]byte(text), byte(0))
		f.Add([]byte(text), byte(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, how byte) {
		o := dumpOf("t")
		if how&1 != 0 {
			o = plainCSV()
			o.Quoted, o.Header, o.Trim = how&2 == 0, how&4 == 0, how&8 != 0
			o.Delimiter = []rune(",;\t|")[how>>4&3]
		}
		o.Encoding = []Encoding{UTF8, Windows1252, Latin1, UTF8}[how>>6]
		r, err := NewReader(bytes.NewReader(text), o)
		if err != nil {
			return
		}
		line := int64(0)
		for {
			row, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if row.Line < line || row.Line > int64(bytes.Count(text, []byte{'\n'}))+1 {
				t.Fatalf("line %d after %d", row.Line, line)
			}
			line = row.Line
			switch {
			case row.Problem != nil && row.Problem.Line < row.Line:
				t.Fatalf("a problem at %d of a row at %d", row.Problem.Line, row.Line)
			case row.Problem == nil && len(row.Fields) != len(r.Columns()):
				t.Fatalf("%d fields, %d columns", len(row.Fields), len(r.Columns()))
			case row.Problem == nil && !isText(row.Fields):
				t.Fatalf("%q is no text", row.Fields)
			}
		}
	})
}

func isText(fields []string) bool {
	return strings.ToValidUTF8(strings.Join(fields, ""), "?") == strings.Join(fields, "")
}

func TestNorthwindIsRead(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(absent.Data(t, "northwind/northwind-data.sql"))
	if err != nil {
		t.Fatal(err)
	}
	columns, rows, err := read(t, string(text), dumpOf("inventory_transactions"))
	if err != nil || len(rows) != 102 || len(columns) != 9 {
		t.Fatalf("%d rows, columns %q, %v", len(rows), columns, err)
	}
	if rows[0] != "93: 35|1|2006-03-22 16:02:28|2006-03-22 16:02:28|80|75|||" {
		t.Errorf("first row %q", rows[0])
	}
}
