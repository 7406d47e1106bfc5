package phrase

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Counted writes a number with its noun, whose plural ends in s.
func Counted[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun + "s"
}

// Scaled writes units of 10^-scale as the quantity itself (S2).
func Scaled(units *big.Int, scale int32) string {
	digits := new(big.Int).Abs(units).String()
	if scale > 0 {
		for len(digits) <= int(scale) {
			digits = "0" + digits
		}
		digits = digits[:len(digits)-int(scale)] + "." + digits[len(digits)-int(scale):]
	}
	if units.Sign() < 0 {
		digits = "-" + digits
	}
	return digits
}

// Quantity is Scaled for units that fit int64.
func Quantity(units int64, scale int32) string { return Scaled(big.NewInt(units), scale) }

// Printable writes text that may hold anything on one line that is safe to show on a terminal: what is not printable, such as a
// line end or an escape sequence, becomes its escape.
func Printable(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}

// OneLine writes a text of several lines, such as an error's, on one line that is safe to show on a terminal: line ends become
// "; ", or a space after a colon, a line that was there before is left out (a client that tries twice says everything twice), and
// whatever is not printable, such as an escape sequence in the name of a file, becomes its escape.
func OneLine(s string) string {
	var b strings.Builder
	seen := map[string]bool{}
	for line := range strings.SplitSeq(strings.TrimSpace(s), "\n") {
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
		b.WriteString(Printable(line))
	}
	return b.String()
}
