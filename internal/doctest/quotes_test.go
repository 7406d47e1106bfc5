package doctest

import (
	"strings"
	"testing"
)

// Go code that a document quotes begins with a comment that names its file, and stands there word for word.
func TestQuotedCodeIsTheCode(t *testing.T) {
	t.Parallel()
	quotes := 0
	for _, doc := range documents(t) {
		for _, b := range blocks(t, doc, document(t, doc)) {
			if b.language != "go" {
				continue
			}
			quotes++
			first, code, _ := strings.Cut(b.text, "\n")
			path, named := strings.CutPrefix(first, "// ")
			if !named {
				t.Errorf("%s:%d: the first line does not name the file", doc, b.line)
				continue
			}
			if !strings.Contains(document(t, path), code) {
				t.Errorf("%s:%d: %s does not say so any more", doc, b.line, path)
			}
		}
	}
	if quotes == 0 {
		t.Error("no quoted code: the fences are not found")
	}
}

// Files that the architecture's way of a record names are there.
func TestNamedFilesExist(t *testing.T) {
	t.Parallel()
	_, part, _ := strings.Cut(document(t, "docs/internals/architecture.md"), "## The way of a record through the files\n")
	part, _, _ = strings.Cut(part, "\n## ")
	named := 0
	for i, name := range strings.Split(part, "`") {
		if i%2 == 1 && strings.HasSuffix(name, ".go") {
			named++
			document(t, "internal/"+name)
		}
	}
	if named < 20 {
		t.Errorf("%d files named", named)
	}
}
