package doctest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/cli/manual"
)

// A help topic and its page of the reference are one text.
func TestCommandLineTopicsAreTheirPages(t *testing.T) {
	t.Parallel()
	for _, topic := range manual.Topics() {
		path := "docs/reference/" + topic.Name + ".md"
		if os.Getenv("AMENDS_UPDATE_DOCS") != "" {
			if err := os.WriteFile(filepath.Join(root, path), []byte(topic.Markdown), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(topic.Markdown, document(t, path)); diff != "" {
			t.Errorf("%s: AMENDS_UPDATE_DOCS=1 go test ./internal/doctest writes it anew (-topic +page):\n%s", path, diff)
		}
	}
}
