package usage

import (
	"errors"
	"fmt"
	"io"

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

// OneLine writes an error on one line that is safe to show on a terminal (phrase.OneLine).
func OneLine(err error) string { return phrase.OneLine(err.Error()) }
