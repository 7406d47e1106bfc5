package doctest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"amends/internal/kafkatest"
	"amends/internal/pgtest"
)

// mapped are the lines that a test does not run as they stand, with what it runs instead and why.
var mapped = map[string]string{
	"make test": ":", // this test is part of it
	"make demo": `make demo ARGS="--once"`,
	"make up":   ":", // the test's own services stand in; package devstack tests the ports and credentials of compose.yaml
	"make down": ":",
}

// sessions are the documents whose shell blocks are run, each in one shell from top to bottom.
var sessions = map[string][]string{ // with the topics that they make
	"README.md":             {"shop-movements", "shop-balances"},
	"docs/start.md":         {"amends-pipeline-demo-1-source", "amends-pipeline-demo-1-output"},
	"docs/guides/import.md": {"cheese-movements", "cheese-balances", "parts-movements", "parts-balances"},
}

// Every shell block of the README and of the tutorial runs, in a copy of the tree, and prints what the block of text
// after it shows, where … stands for anything.
func TestShellBlocksRun(t *testing.T) {
	t.Parallel()
	pgtest.Installed(t)
	brokers := kafkatest.Brokers(t)
	tree := checkout(t)
	used, ran := map[string]bool{}, 0
	for path, topics := range sessions {
		t.Run(path, func(t *testing.T) {
			stand := []string{"postgres://amends:amends-local-only@127.0.0.1:15432/amends", pgtest.New(t), "127.0.0.1:19092", strings.Join(brokers, ",")}
			for _, name := range topics {
				stand = append(stand, name, kafkatest.Topic(t, brokers))
			}
			s := session{path: path, dir: tree, brokers: strings.Join(brokers, ","), stand: strings.NewReplacer(stand...), used: used}
			s.run(t, blocks(t, path, document(t, path)))
			ran++
		})
	}
	for line := range mapped {
		if !used[line] && ran == len(sessions) { // not where -run names one document
			t.Errorf("%q is mapped and in no document", line)
		}
	}
}

// session is one document's run.
type session struct {
	stand   *strings.Replacer
	used    map[string]bool
	path    string
	dir     string
	brokers string
}

// sessionTimeout bounds one document; a first run fetches and builds.
const sessionTimeout = 10 * time.Minute

func (s *session) run(t *testing.T, all []block) {
	t.Helper()
	out := t.TempDir()
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	var numbers []int
	for i, b := range all {
		if b.language != "sh" {
			continue
		}
		numbers = append(numbers, i)
		fmt.Fprintf(&script, "echo 'line %d' >&2\n{\n%s} >%s/%d\n", b.line, s.lines(b.text), out, i)
	}
	if len(numbers) < 3 {
		t.Fatalf("%s: %d shell blocks", s.path, len(numbers))
	}
	ctx, cancel := context.WithTimeout(t.Context(), sessionTimeout)
	defer cancel()
	home, err := os.MkdirTemp("", "amends-doc-") // short: PostgreSQL's socket lies below it
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	if err := os.Chmod(home, 0o711); err != nil { // PostgreSQL may run under another uid
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", script.String())
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+home, "AMENDS_BROKERS="+s.brokers, "AMENDS_DIR=", "AMENDS_MANIFEST=",
		"MAKELEVEL=", "MAKEFLAGS=", "MFLAGS=") // what a make around the tests tells a make inside them
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that background jobs end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	err = cmd.Run()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // none is left unless the script failed
	if err != nil {
		t.Fatalf("%s: %v\n%s", s.path, err, last(said.String(), 3000))
	}
	for _, i := range numbers {
		if i+1 < len(all) && all[i+1].language == "text" {
			printed, err := os.ReadFile(filepath.Join(out, fmt.Sprint(i)))
			if err != nil {
				t.Fatal(err)
			}
			s.compare(t, all[i+1], string(printed))
		}
	}
}

// lines replaces what is mapped and what the test's own services stand in for.
func (s *session) lines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		command, _, _ := strings.Cut(line, " #")
		command = strings.TrimSpace(command)
		if instead, ok := mapped[command]; ok {
			s.used[command] = true
			lines[i] = instead
		}
	}
	return s.stand.Replace(strings.Join(lines, "\n"))
}

// compare matches what a block printed with the text that the document shows.
func (s *session) compare(t *testing.T, shown block, printed string) {
	t.Helper()
	var pattern strings.Builder
	for i, part := range strings.Split(s.stand.Replace(shown.text), "…") {
		if i > 0 {
			pattern.WriteString("(?s:.*?)")
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	if ok, err := regexp.MatchString("^"+pattern.String()+"$", printed); !ok || err != nil {
		t.Errorf("%s:%d shows\n%s\nprinted was\n%s", s.path, shown.line, shown.text, printed)
	}
}

// checkout copies the tree without what is built and without its history.
func checkout(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	leave := []string{".git", "bin", "artifacts", ".amends"}
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && p != root {
			return nil // it was there for a moment: a test beside this one made it
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		switch {
		case slices.Contains(leave, rel):
			return fs.SkipDir
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !e.Type().IsRegular():
			return nil
		}
		info, err := e.Info()
		var b []byte
		if err == nil {
			b, err = os.ReadFile(p)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// last returns the end of a text.
func last(text string, n int) string { return text[max(0, len(text)-n):] }

// Commands and their answers stand in fences that say what they are, so that none is missed.
func TestBlocksSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	for path := range sessions {
		text := document(t, path)
		for _, b := range blocks(t, path, text) {
			if !slices.Contains([]string{"sh", "sql", "json", "text"}, b.language) {
				t.Errorf("%s:%d: a block of %q", path, b.line, b.language)
			}
		}
		fenced := false
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			if !fenced && strings.HasPrefix(line, "    ") {
				t.Errorf("%s:%d: an indented block, which no test runs", path, i+1)
			}
		}
	}
}
