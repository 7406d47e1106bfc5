package inspect

import (
	"bufio"
	"fmt"
	"io"

	"amends/internal/health"
	"amends/internal/phrase"
)

// DoctorText writes the answer, then a line a check; under what is not fine stand why it matters and what to do.
func DoctorText(out io.Writer, d *health.Doctor) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%s\n\n", doctorHeadline(d))
	area := ""
	for i := range d.Checks {
		c := &d.Checks[i]
		if c.Area != area && area != "" {
			fmt.Fprintln(w)
		}
		area = c.Area
		fmt.Fprintf(w, "%-8s %-9s %-20s %s\n", c.Level, c.Area, c.Name, phrase.Printable(c.Found))
		if c.Why != "" {
			fmt.Fprintf(w, "%-39s why: %s\n", "", phrase.Printable(c.Why))
		}
		if c.Fix != "" {
			fmt.Fprintf(w, "%-39s fix: %s\n", "", phrase.Printable(c.Fix))
		}
	}
	return w.Flush()
}

func doctorHeadline(d *health.Doctor) string {
	fine := len(d.Checks) - d.Failures - d.Warnings - d.Unknown
	rest := fmt.Sprintf("%s, %d ok, %d not known", phrase.Counted(int64(d.Warnings), "warning"), fine, d.Unknown)
	if d.Failures == 0 {
		return "OK  nothing fails; " + rest
	}
	return "FAILURE  " + phrase.Counted(int64(d.Failures), "check") + " failed; " + rest
}
