package doctest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Every relative link leads to a file, and its fragment to a heading of it.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, from := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(document(t, from), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			seen++
			file, fragment, _ := strings.Cut(m[1], "#")
			to := from
			if file != "" {
				to = path.Join(path.Dir(from), file)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s: %s leads nowhere", from, m[1])
				continue
			}
			if fragment != "" && !headings(document(t, to))[fragment] {
				t.Errorf("%s: %s: %s has no such heading", from, m[1], to)
			}
		}
	}
	if seen < 30 {
		t.Errorf("%d links found: the pattern does not find them", seen)
	}
}

// headings returns the fragments that a document's headings give.
func headings(text string) map[string]bool {
	all := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		words, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		var b strings.Builder
		for _, r := range strings.ToLower(words) {
			switch {
			case r == ' ':
				b.WriteByte('-')
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				b.WriteRune(r)
			}
		}
		all[b.String()] = true
	}
	return all
}

// Every document can be reached from the README by links.
func TestEveryDocumentIsLinked(t *testing.T) {
	t.Parallel()
	reached := map[string]bool{}
	var visit func(string)
	visit = func(from string) {
		if reached[from] || !strings.HasSuffix(from, ".md") {
			return
		}
		reached[from] = true
		for _, m := range link.FindAllStringSubmatch(document(t, from), -1) {
			file, _, _ := strings.Cut(m[1], "#")
			to := path.Join(path.Dir(from), file)
			if _, err := os.Stat(filepath.Join(root, to)); err == nil && !strings.Contains(m[1], "://") {
				visit(to)
			}
		}
	}
	visit("README.md")
	for _, d := range documents(t) {
		if !reached[d] {
			t.Errorf("%s: no way leads here from README.md", d)
		}
	}
}
