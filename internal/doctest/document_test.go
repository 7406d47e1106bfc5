package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root is the module's folder, from that of this package.
var root = filepath.Join("..", "..")

// document reads a file of the module.
func document(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// writing is held while a document is compared and perhaps written, since tests run side by side.
var writing sync.Mutex

// generated compares the part of a document between the two comments that name it with what code says. With
// AMENDS_UPDATE_DOCS=1 it writes the part anew instead.
func generated(t *testing.T, path, name, want string) {
	t.Helper()
	writing.Lock()
	defer writing.Unlock()
	text := document(t, path)
	begin, end := fmt.Sprintf("<!-- generated: %s -->\n", name), fmt.Sprintf("<!-- end: %s -->", name)
	before, rest, ok := strings.Cut(text, begin)
	got, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no part between %q and %q", path, begin, end)
	}
	if got == want {
		return
	}
	if os.Getenv("AMENDS_UPDATE_DOCS") == "" {
		t.Errorf("%s, %s: AMENDS_UPDATE_DOCS=1 go test ./internal/doctest writes it anew (-document +code):\n%s", path, name, cmp.Diff(got, want))
		return
	}
	if err := os.WriteFile(filepath.Join(root, path), []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// block is one fenced part of a document.
type block struct {
	language string
	text     string // with its line ends
	line     int    // of the opening fence, from 1
}

// blocks returns the fenced parts of a document in order.
func blocks(t *testing.T, path, text string) []block {
	t.Helper()
	var all []block
	open := false
	for i, line := range strings.SplitAfter(text, "\n") {
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && !open:
			all = append(all, block{language: language, line: i + 1})
			open = true
		case fence:
			open = false
		case open:
			all[len(all)-1].text += line
		}
	}
	if open {
		t.Errorf("%s: a fence is not closed", path)
	}
	return all
}

// documents lists every document of the module.
func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			rel, err := filepath.Rel(root, f)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, filepath.ToSlash(rel))
		}
	}
	if len(all) < 20 {
		t.Fatalf("%d documents: these are not all", len(all))
	}
	return all
}
