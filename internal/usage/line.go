package usage

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"amends/internal/phrase"
)

// Report writes an error's guide, if it has one, and then its cause as the last line.
func Report(out io.Writer, program string, err error) {
	var help interface{ Guide() string }
	if errors.As(err, &help) {
		fmt.Fprintln(out, help.Guide())
	}
	fmt.Fprintf(out, "%s: %s\n", program, OneLine(err))
}

// OneLine writes an error on one line that is safe to show on a terminal: line ends become "; ", or a space after a colon,
// a line that was there before is left out (a client that tries twice says everything twice), and whatever is not
// printable, such as an escape sequence in the name of a file, becomes its escape.
func OneLine(err error) string {
	var b strings.Builder
	seen := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		if line = strings.TrimSpace(line); seen[line] {
			continue
		}
		seen[line] = true
		switch said := b.String(); {
		case strings.HasSuffix(said, ":"):
			b.WriteString(" ")
		case said != "":
			b.WriteString("; ")
		}
		b.WriteString(phrase.Printable(line))
	}
	return b.String()
}

// Counted writes a number with its noun, whose plural ends in s.
func Counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
