package mapping

import (
	"fmt"
	"slices"
	"strings"

	"amends/internal/ledger"
)

// dateFormat is how a date is written.
type dateFormat struct {
	source string
	parts  []string // fields of dateFields, or one literal character, or rest
}

// dateFields are the fields of a format, longer ones before those that they begin with.
var dateFields = []string{"YYYY", "MMM", "MM", "M", "DD", "D", "hh", "mm", "ss"}

// rest stands for anything at the end.
const rest = "*"

var months = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

// parseFormat reads a format: fields, and other characters that are there as they are. Year, month and day are in it once.
func parseFormat(text string) (dateFormat, error) {
	f := dateFormat{source: text}
	has := map[byte]int{}
	for at := 0; at < len(text); {
		i := slices.IndexFunc(dateFields, func(field string) bool { return strings.HasPrefix(text[at:], field) })
		field := text[at : at+1]
		if i >= 0 {
			field = dateFields[i]
			has[field[0]]++
		}
		switch c := field[0]; {
		case i >= 0:
		case field == rest && at != len(text)-1:
			return f, fmt.Errorf("%q has something behind *, which stands for all the rest", text)
		case (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') && c != 'T' && c != 'Z':
			return f, fmt.Errorf("%q has %q in it; fields are %s", text, field, strings.Join(dateFields, ", "))
		}
		f.parts = append(f.parts, field)
		at += len(field)
	}
	if has['Y'] != 1 || has['M'] != 1 || has['D'] != 1 || has['h'] > 1 || has['m'] > 1 || has['s'] > 1 {
		return f, fmt.Errorf("%q needs YYYY, one of MM, M and MMM, and one of DD and D, each field once", text)
	}
	return f, nil
}

// parse reads a date. A time of day in it must be one and is not kept (S1: a business day has no time zone).
func (f *dateFormat) parse(text string) (ledger.Day, bool) {
	var year, month, day int
	at := 0
	for _, p := range f.parts {
		var ok bool
		switch p {
		case "YYYY":
			year, ok = take(text, &at, 4, 4)
		case "MM":
			month, ok = take(text, &at, 2, 2)
		case "M":
			month, ok = take(text, &at, 1, 2)
		case "MMM":
			if len(text)-at >= 3 {
				month = slices.Index(months, strings.ToLower(text[at:at+3])) + 1
				ok, at = month > 0, at+3
			}
		case "DD":
			day, ok = take(text, &at, 2, 2)
		case "D":
			day, ok = take(text, &at, 1, 2)
		case "hh":
			ok = below(text, &at, 24)
		case "mm", "ss":
			ok = below(text, &at, 60)
		case rest:
			at, ok = len(text), true
		default:
			if ok = strings.HasPrefix(text[at:], p); ok {
				at++
			}
		}
		if !ok {
			return 0, false
		}
	}
	if at != len(text) {
		return 0, false
	}
	return ledger.DateOf(year, month, day)
}

// take reads digits, at least and at most so many.
func take(text string, at *int, least, most int) (int, bool) {
	n, v := 0, 0
	for n < most && *at < len(text) && text[*at] >= '0' && text[*at] <= '9' {
		v = v*10 + int(text[*at]-'0')
		n++
		*at++
	}
	return v, n >= least
}

func below(text string, at *int, limit int) bool {
	v, ok := take(text, at, 2, 2)
	return ok && v < limit
}
