package progress

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// barCells are the columns of a bar's inside; a bar stands only where all else fits.
const (
	barCells = 24
	green    = "\x1b[32m"
	plain    = "\x1b[0m"
)

// live returns the live line, at most width columns. What matters least is left out first: the bar, then the rate.
func (b *Bar) live(elapsed time.Duration, width int) string {
	rate, left := b.pace(elapsed)
	head, counted, pace := b.what, b.counted(), rate
	if left != "" {
		left += " left"
	}
	if b.total > 0 {
		head += fmt.Sprintf(" %3d%%", b.percent())
	}
	bar := ""
	if b.total > 0 {
		full := int(b.percent()) * barCells / 100
		bar = "[" + strings.Repeat("=", full) + strings.Repeat(" ", barCells-full) + "]"
	}
	for _, parts := range [][]string{{head, bar, counted, pace, left}, {head, counted, pace, left}, {head, counted, left}, {head, left}, {head}} {
		if line := joined(parts, "  "); utf8.RuneCountInString(line) <= width {
			if b.screen.color && bar != "" {
				line = strings.Replace(line, bar, green+bar+plain, 1)
			}
			return line
		}
	}
	return cut(head, width)
}

// plain returns the line for a stream that is no terminal.
func (b *Bar) plain(elapsed time.Duration) string {
	rate, left := b.pace(elapsed)
	if left != "" {
		left += " left"
	}
	percent := ""
	if b.total > 0 {
		percent = fmt.Sprintf("%d%%", b.percent())
	}
	return b.what + ": " + joined([]string{b.counted(), percent, rate, left}, ", ")
}

// summary returns the line that stays.
func (b *Bar) summary(elapsed time.Duration) string {
	counted := amount(b.done, b.unit)
	if b.total > 0 && b.done < b.total {
		counted = b.counted()
	}
	rate, _ := b.pace(elapsed)
	return b.what + ": " + joined([]string{counted + " in " + span(elapsed), rate}, ", ")
}

// counted returns "done of total unit".
func (b *Bar) counted() string {
	if b.total <= 0 {
		return amount(b.done, b.unit)
	}
	if b.unit == "bytes" {
		return size(b.done) + " of " + size(b.total)
	}
	return grouped(b.done) + " of " + amount(b.total, b.unit)
}

// percent is 100 only when everything is done.
func (b *Bar) percent() int64 {
	if b.done >= b.total {
		return 100
	}
	return int64(float64(max(b.done, 0)) / float64(b.total) * 100)
}

// pace returns the rate since the start and, where the total is known, the time left at that rate.
func (b *Bar) pace(elapsed time.Duration) (rate, left string) {
	moved := b.done - b.base
	if moved <= 0 || elapsed <= 0 {
		return "", ""
	}
	perSecond := float64(moved) / elapsed.Seconds()
	switch {
	case b.unit == "bytes":
		rate = size(int64(perSecond)) + "/s"
	case perSecond < 10:
		rate = strconv.FormatFloat(perSecond, 'f', 1, 64) + "/s"
	default:
		rate = grouped(int64(perSecond)) + "/s"
	}
	if b.total > b.done {
		left = span(time.Duration(min(float64(b.total-b.done)/perSecond, 1e9) * float64(time.Second)))
	}
	return rate, left
}

func amount(n int64, unit string) string {
	if unit == "bytes" {
		return size(n)
	}
	return grouped(n) + " " + unit
}

// size writes a number of bytes in powers of 1000.
func size(n int64) string {
	v := float64(n)
	for _, unit := range []string{"bytes", "kB", "MB", "GB"} {
		if v < 1000 {
			if unit == "bytes" {
				return fmt.Sprintf("%d bytes", n)
			}
			return fmt.Sprintf("%.1f %s", v, unit)
		}
		v /= 1000
	}
	return fmt.Sprintf("%.1f TB", v)
}

// grouped writes a number with a comma every three digits.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// span writes a duration as people say it: 4s, 3m20s, 2h05m.
func span(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}

// joined joins the parts that are not empty.
func joined(parts []string, between string) string {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, p)
		}
	}
	return strings.Join(there, between)
}

// cut returns the first n characters.
func cut(s string, n int) string {
	for i := range s {
		if n <= 0 {
			return s[:i]
		}
		n--
	}
	return s
}
