package usage

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Report writes an error's guide, if it has one, and then its cause as the last line.
func Report(out io.Writer, program string, err error) {
	var help interface{ Guide() string }
	if errors.As(err, &help) {
		fmt.Fprintln(out, help.Guide())
	}
	fmt.Fprintf(out, "%s: %s\n", program, OneLine(err))
}

// OneLine writes an error on one line that is safe to show on a terminal: line ends become "; ", and whatever is not
// printable, such as an escape sequence in the name of a file, becomes its escape.
func OneLine(err error) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(err.Error()), "\n") {
		if i > 0 {
			b.WriteString("; ")
		}
		for _, r := range strings.TrimSpace(line) {
			if strconv.IsPrint(r) {
				b.WriteRune(r)
				continue
			}
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}
