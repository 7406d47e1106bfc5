package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"amends/internal/store/postgres/console"
	"amends/internal/usage"
)

const (
	firstPrompt = "amends> "
	nextPrompt  = "     -> "
	greeting    = `A console that only reads. Statements end with a semicolon; \d lists what there is, \q or Ctrl-D ends.`
)

// screen joins the two directions of a terminal.
type screen struct {
	io.Reader
	io.Writer
}

// prompt reads statements from a terminal until its end, \q or Ctrl-C. A statement that fails is answered by its error.
func (a *asker) prompt(ctx context.Context, in *os.File) error {
	fd := int(in.Fd())
	t := term.NewTerminal(screen{in, a.words}, firstPrompt)
	fmt.Fprintln(a.words, greeting)
	pending := ""
	for ctx.Err() == nil {
		line, err := readLine(fd, t)
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(a.words)
			return nil
		}
		if err != nil && !errors.Is(err, term.ErrPasteIndicator) {
			return fmt.Errorf("read statement: %w", err)
		}
		if command := strings.TrimSpace(line); pending == "" && strings.HasPrefix(command, `\`) {
			if command = strings.TrimRight(command, "; "); command == `\q` {
				return nil
			}
			line = command + ";"
		}
		statements, rest := console.Split(pending + line + "\n")
		for _, s := range statements {
			if err := a.ask(ctx, s); err != nil {
				fmt.Fprintln(a.words, usage.OneLine(err))
			}
		}
		pending = ""
		t.SetPrompt(firstPrompt)
		if rest != "" {
			pending = rest + "\n"
			t.SetPrompt(nextPrompt)
		}
	}
	return nil
}

// readLine reads one line with the terminal in raw mode, which ends before a statement runs: Ctrl-C then stops it.
func readLine(fd int, t *term.Terminal) (string, error) {
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(fd, before) }() // what cannot be restored cannot be helped
	if width, height, err := term.GetSize(fd); err == nil && width > 0 {
		if err := t.SetSize(width, height); err != nil {
			return "", err
		}
	}
	return t.ReadLine()
}

// listing lists the relations that names are looked for in; details lists the columns of one.
const (
	listing = `SELECT c.relname AS name, CASE c.relkind WHEN 'v' THEN 'view' ELSE 'table' END AS kind, obj_description(c.oid, 'pg_class') AS about
FROM pg_catalog.pg_class AS c WHERE c.relnamespace = to_regnamespace('amends') AND c.relkind IN ('r', 'p', 'v') ORDER BY kind DESC, name`
	details = `SELECT a.attname AS column, format_type(a.atttypid, a.atttypmod) AS type, NOT a.attnotnull AS nullable
FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`
)

// described turns \d and \d NAME into statements and returns others as they are, "" for an unknown command.
func described(statement string) string {
	command, ok := strings.CutPrefix(statement, `\`)
	if !ok {
		return statement
	}
	words := strings.Fields(command)
	switch {
	case len(words) == 1 && words[0] == "d":
		return listing
	case len(words) == 2 && words[0] == "d" && !strings.ContainsAny(words[1], `'\`):
		return fmt.Sprintf(details, "'"+words[1]+"'")
	}
	return ""
}
