package target

import (
	"os/exec"
	"testing"
)

// A shell reads back the word that was written; what is plain stays plain.
func TestAShellReadsAQuotedWord(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"bin/amends-1.2,a:b_C": "bin/amends-1.2,a:b_C", "": "''", "it's": `'it'\''s'`, "a b": "'a b'", "~/x": "'~/x'", "$HOME": "'$HOME'", "a\nb": "'a\nb'", "é": "'é'",
	} {
		got := Quote(word)
		if got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
		if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "printf %s "+got).Output(); err != nil || string(out) != word {
			t.Errorf("%q: the shell reads %q, %v", word, out, err)
		}
	}
}
