package manual

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestTopicsAreReadableOnATerminal(t *testing.T) {
	t.Parallel()
	for _, topic := range Topics() {
		text := Text(topic.Markdown)
		for _, line := range strings.Split(text, "\n") {
			if utf8.RuneCountInString(line) > lineWidth && !strings.HasPrefix(line, "    ") {
				t.Errorf("%s: a line of %d characters: %q", topic.Name, utf8.RuneCountInString(line), line)
			}
			if strings.ContainsAny(line, "`|#") || strings.Contains(line, "](") {
				t.Errorf("%s: marks of Markdown are left in %q", topic.Name, line)
			}
		}
	}
}

func TestTextOfEveryKindOfBlock(t *testing.T) {
	t.Parallel()
	const page = "# A title\n\nOne `code` and a\n[link](x.md).\n\n| a | second |\n|---|---|\n| `long one` | x \\| y |\n\n- item one\n  goes on\n- two\n\n```sh\n  raw | text\n\n# kept\n```\nend\n"
	const want = "A TITLE\n\nOne code and a link.\n\n  a         second\n  long one  x | y\n\n  - item one goes on\n  - two\n\n      raw | text\n    \n    # kept\n\nend\n"
	if diff := cmp.Diff(want, Text(page)); diff != "" {
		t.Error(diff)
	}
}

func TestWordsAreWrapped(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"ab cd", "éé ff", "longword", "x"}, wrapped("ab cd éé ff longword x", 5)); diff != "" {
		t.Error(diff)
	}
}

func TestRoffShowsEveryCharacter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		".so x\n'q": `\&.so x` + "\n" + `\(aqq`, `a\n-o`: `a\en\-o`, "plain": "plain", "^~`": "\\(ha\\(ti\\`",
	} {
		if got := escape(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
