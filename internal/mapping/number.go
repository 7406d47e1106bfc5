package mapping

import (
	"fmt"
	"math"
	"strings"
)

// number is a quantity: whole units of 10^-scale and its sign.
type number struct {
	units    int64
	negative bool
}

// parse reads a number exactly: [+-]digits, grouped by threes or not at all, then perhaps the decimal sign and digits.
// It returns why the text is none.
func (q *quantityOf) parse(text string, scale int) (number, string) {
	var n number
	rest := text
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		n.negative, rest = rest[0] == '-', rest[1:]
	}
	whole, fraction, pointed := strings.Cut(rest, string(q.decimal))
	if q.group != "" && strings.Contains(whole, q.group) {
		groups := strings.Split(whole, q.group)
		for i, g := range groups {
			if len(g) > 3 || len(g) == 0 || i > 0 && len(g) != 3 {
				return n, fmt.Sprintf("%q is not grouped by threes", text)
			}
		}
		whole = strings.Join(groups, "")
	}
	if !digits(whole) || whole == "" || pointed && !digits(fraction) || pointed && fraction == "" {
		return n, fmt.Sprintf("%q is no number with decimal sign %q%s", text, q.decimal, q.grouping())
	}
	if extra := min(scale, len(fraction)); strings.Trim(fraction[extra:], "0") != "" {
		return n, fmt.Sprintf("%q has more than %d decimal places, which is the namespace's quantity_scale", text, scale)
	}
	for i := range len(whole) + scale {
		digit := int64(0)
		if i < len(whole) {
			digit = int64(whole[i] - '0')
		} else if i -= len(whole); i < len(fraction) {
			digit = int64(fraction[i] - '0')
		}
		if n.units > (math.MaxInt64-digit)/10 {
			return n, fmt.Sprintf("%q is more than 2^63-1 units of 10^-%d", text, scale)
		}
		n.units = n.units*10 + digit
	}
	return n, ""
}

func (q *quantityOf) grouping() string {
	if q.group == "" {
		return " and nothing between thousands"
	}
	return fmt.Sprintf(" and %q between thousands", q.group)
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
