package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"amends/internal/cli/target"
	"amends/internal/pgtest"
	"amends/internal/store"
	"amends/internal/usage"
)

// sql runs the command and returns what it wrote.
func sql(t *testing.T, url string, stdin io.Reader, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, words strings.Builder
	err = sqlTo(t.Context(), t, url, stdin, &out, &words, args...)
	return out.String(), words.String(), err
}

func sqlTo(ctx context.Context, t *testing.T, url string, stdin io.Reader, out, words io.Writer, args ...string) error {
	t.Helper()
	e := &target.Env{Stdin: stdin, Stdout: out, Stderr: words, Program: "amends", Getenv: func(k string) string {
		return map[string]string{target.DatabaseName: url, "AMENDS_DIR": t.TempDir()}[k]
	}}
	cmd := SQL(e)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(usage.Rewrite(args))
	return cmd.ExecuteContext(ctx)
}

// database has two rows of every kind of value.
func database(t *testing.T) string {
	t.Helper()
	url := pgtest.New(t, pgtest.Fast)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), `CREATE SCHEMA amends; CREATE TABLE amends.stock (item text, close bigint, price numeric, ok boolean, at date, j jsonb, raw bytea);
		INSERT INTO amends.stock VALUES ('widget', -5, 'NaN', true, '2026-01-31', '{"a":[1]}', '\x00ff'), (E'a,"\n\u202E', 9007199254740993, 1.50, false, NULL, NULL, NULL);
		CREATE VIEW amends.items AS SELECT item FROM amends.stock; COMMENT ON VIEW amends.items IS 'names'`); err != nil {
		t.Fatal(err)
	}
	return url
}

func TestFormsOfRows(t *testing.T) {
	t.Parallel()
	url := database(t)
	for form, want := range map[string]string{
		"text": "" +
			"item                    close  price  ok  at          j           raw                close\n" +
			"-----------  ----------------  -----  --  ----------  ----------  ------  ----------------\n" +
			"widget                     -5    NaN  t   2026-01-31  {\"a\": [1]}  \\x00ff                -5\n" +
			"a,\"\\n\\u202e  9007199254740993   1.50  f                                   9007199254740993\n",
		"csv": "" +
			"item,close,price,ok,at,j,raw,close\n" +
			"widget,-5,NaN,t,2026-01-31,\"{\"\"a\"\": [1]}\",\\x00ff,-5\n" +
			"\"a,\"\"\n\u202e\",9007199254740993,1.50,f,,,,9007199254740993\n",
		"json": `{"schema":1,"columns":[{"name":"item","type_oid":25},{"name":"close","type_oid":20},{"name":"price","type_oid":1700},{"name":"ok","type_oid":16},` +
			`{"name":"at","type_oid":1082},{"name":"j","type_oid":3802},{"name":"raw","type_oid":17},{"name":"close_2","type_oid":20}],"rows":[` +
			`{"item":"widget","close":-5,"price":"NaN","ok":true,"at":"2026-01-31","j":{"a": [1]},"raw":"\\x00ff","close_2":-5},` +
			`{"item":"a,\"\n` + "\u202e" + `","close":9007199254740993,"price":1.50,"ok":false,"at":null,"j":null,"raw":null,"close_2":9007199254740993}]}` + "\n",
	} {
		out, _, err := sql(t, url, strings.NewReader(""), "-o", form, "-c", "SELECT item, close, price, ok, at, j, raw, close FROM stock ORDER BY close")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("%s: %s", form, diff)
		}
		if form == "json" && !json.Valid([]byte(out)) {
			t.Error("this is no JSON")
		}
	}
}

func TestNoRowsAreAnAnswer(t *testing.T) {
	t.Parallel()
	url := database(t)
	for form, want := range map[string]string{"text": "item\n----\n", "csv": "item\n", "json": `{"schema":1,"columns":[{"name":"item","type_oid":25}],"rows":[]}` + "\n"} {
		if out, _, err := sql(t, url, strings.NewReader(""), "-o", form, "-c", "SELECT item FROM stock WHERE false"); err != nil || out != want {
			t.Errorf("%s: %q %v", form, out, err)
		}
	}
}

func TestStatementsFromStdinAndFlag(t *testing.T) {
	t.Parallel()
	url := database(t)
	out, words, err := sql(t, url, strings.NewReader("SELECT 1 AS a;\n-- two\nSELECT ';' AS b"))
	if want := "a\n-\n1\n\nb\n-\n;\n"; err != nil || out != want || words != "(1 row)\n(1 row)\n" {
		t.Errorf("%q %q %v", out, words, err)
	}
	out, _, err = sql(t, url, strings.NewReader(""), "-o", "csv", "-c", `\d`)
	if want := "name,kind,about\nitems,view,names\nstock,table,\n"; err != nil || out != want {
		t.Errorf("%q %v", out, err)
	}
	// As at a prompt, a command with a backslash ends with its line, and \q ends everything.
	out, _, err = sql(t, url, strings.NewReader("SELECT 1 AS a;\n\\d items\nSELECT 2\n AS b;\\d items;\r\n-- the end\n\\q\nnothing more"), "-o", "csv")
	if want := "a\n1\n\ncolumn,type,nullable\nitem,text,t\n\nb\n2\n\ncolumn,type,nullable\nitem,text,t\n"; err != nil || out != want {
		t.Errorf("%q %v", out, err)
	}
	out, _, err = sql(t, url, strings.NewReader(`\d stock`), "-o", "csv")
	if err != nil || !strings.HasPrefix(out, "column,type,nullable\nitem,text,t\nclose,bigint,t\n") {
		t.Errorf("%q %v", out, err)
	}
}

// -watch repeats what -c says, without the number of rows; what stdin says can be read only once.
func TestStatementsAreWatched(t *testing.T) {
	t.Parallel()
	url := database(t)
	ctx, stop := context.WithTimeout(t.Context(), 90*time.Second)
	defer stop()
	r, w := io.Pipe()
	var words strings.Builder
	go func() {
		w.CloseWithError(sqlTo(ctx, t, url, strings.NewReader(""), w, &words, "-c", "SELECT item FROM items WHERE item = 'widget'", "-watch", "100ms"))
	}()
	var got strings.Builder
	lines := bufio.NewScanner(r)
	for rounds := 0; lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "-- 20") { // the time of a round
			if rounds++; rounds == 3 {
				stop()
			}
			continue
		}
		got.WriteString(lines.Text() + "\n")
	}
	const round = "item\n------\nwidget\n"
	if lines.Err() != nil || words.String() != "" || got.String() != round+round+round {
		t.Errorf("%v %q %q", lines.Err(), words.String(), got.String())
	}
	var wrong *usage.Error
	ctx, stop = context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	if err := sqlTo(ctx, t, url, strings.NewReader("SELECT 1"), io.Discard, io.Discard, "-watch"); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "-watch needs -c") {
		t.Error(err)
	}
}

func TestWrongStatementsAreWrongUsage(t *testing.T) {
	t.Parallel()
	url := database(t)
	for text, cause := range map[string]string{
		"":                             "no statement",
		"DELETE FROM stock":            "only reads",
		"SELECT * INTO x FROM stock":   "cannot execute SELECT INTO in a read-only transaction: this console only reads",
		"SELECT nope FROM stock":       `column "nope" does not exist at character 8 (42703)`,
		"SELECT * FROM nope":           `relation "nope" does not exist`,
		"SELECT 1/0":                   "division by zero (22012)",
		"SELECT 1; DROP TABLE stock":   "only reads",
		`\x`:                           "unknown command",
		`\d a'; DROP TABLE stock; --'`: "unknown command",
	} {
		var wrong *usage.Error
		if _, _, err := sql(t, url, strings.NewReader(text)); !errors.As(err, &wrong) || !strings.Contains(err.Error(), cause) {
			t.Errorf("%q: %v, want %q", text, err, cause)
		}
	}
	var wrong *usage.Error
	for _, args := range [][]string{{"-timeout", "0s"}, {"-o", "xml"}, {"extra"}} {
		if _, _, err := sql(t, url, strings.NewReader("SELECT 1"), args...); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, _, err := sql(t, url, strings.NewReader(strings.Repeat(" ", longestScript+1))); !errors.As(err, &wrong) {
		t.Error(err)
	}
	if _, _, err := sql(t, "", strings.NewReader("SELECT 1")); !errors.As(err, &wrong) || !strings.Contains(err.Error(), target.DatabaseName) {
		t.Error(err)
	}
	if _, _, err := sql(t, pgtest.New(t, pgtest.Fast), strings.NewReader("SELECT * FROM balances")); !errors.Is(err, store.ErrNoSchema) {
		t.Errorf("a database without the schema: %v", err)
	}
}

// A long answer is written as it comes: the first rows are there before the statement's time is up, in which it cannot end.
func TestLongAnswersAreStreamed(t *testing.T) {
	t.Parallel()
	url := database(t)
	for _, form := range []string{"text", "csv", "json"} {
		r, w := io.Pipe()
		go func() {
			w.CloseWithError(sqlTo(t.Context(), t, url, strings.NewReader(""), w, io.Discard, "-o", form, "-c", "SELECT generate_series(1, 100000000) AS n"))
		}()
		began := time.Now()
		if _, err := io.CopyN(io.Discard, r, 1<<20); err != nil || time.Since(began) > standardTimeout*3/4 {
			t.Errorf("%s: %v after %v", form, err, time.Since(began))
		}
		r.CloseWithError(errors.New("enough"))
	}
}

// At a prompt a statement may take several lines, an error does not end the session, and \q does.
func TestPrompt(t *testing.T) {
	t.Parallel()
	url := database(t)
	person, program := terminal(t)
	var out, words strings.Builder
	done := make(chan error, 1)
	go func() { done <- sqlTo(t.Context(), t, url, program, &out, &words) }()
	fmt.Fprint(person, "SELECT close\rFROM stock WHERE item = 'widget';\rDELETE FROM stock;\r\\d items\rSELECT 7 AS seven; SELECT\r 8 AS eight;\r\\q\r")
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(90 * time.Second):
		t.Fatalf("the prompt does not end: %s", words.String())
	}
	want := "close\n-----\n   -5\n\n\ncolumn  type  nullable\n------  ----  --------\nitem    text  t\n\nseven\n-----\n    7\n\neight\n-----\n    8\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	for _, said := range []string{"A console that only reads", "amends> ", "     -> ", "only reads: SELECT", "(1 row)"} {
		if !strings.Contains(words.String(), said) {
			t.Errorf("%q is not said in %q", said, words.String())
		}
	}
}

// terminal opens a pseudo terminal: what a person types, and what the program reads from.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}
