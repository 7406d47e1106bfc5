package ledger

import "time"

// Day is a business day (S1): the number of days since 0000-12-31 of the proleptic
// Gregorian calendar, so that 0001-01-01 is 1 and 9999-12-31 is 3,652,059. The zero
// value is no day: the day of a status output and of a cancelled assertion.
type Day int32

// The first and last day of the contract (S3).
const (
	MinDay Day = 1
	MaxDay Day = 3_652_059
)

// DateOf returns the day of a proleptic Gregorian date and whether it is a real one within MinDay..MaxDay.
func DateOf(year, month, day int) (Day, bool) {
	if year < 1 || year > 9999 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return 0, false
	}
	y := year - 1
	n := y*365 + y/4 - y/100 + y/400 + daysBefore[month-1] + day
	if month > 2 && leap(year) {
		n++
	}
	return Day(n), true
}

// ParseDay reads YYYY-MM-DD, exactly ten ASCII bytes, a real date (S3).
func ParseDay(s string) (Day, bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	var f [3]int
	for i, span := range [3][2]int{{0, 4}, {5, 7}, {8, 10}} {
		for _, c := range []byte(s[span[0]:span[1]]) {
			if c < '0' || c > '9' {
				return 0, false
			}
			f[i] = f[i]*10 + int(c-'0')
		}
	}
	return DateOf(f[0], f[1], f[2])
}

// Date returns the calendar date of d, which must be within MinDay..MaxDay.
func (d Day) Date() (year, month, day int) {
	n := int(d) - 1
	n400 := n / 146_097
	n %= 146_097
	n100 := min(n/36_524, 3)
	n -= n100 * 36_524
	n4 := n / 1_461
	n %= 1_461
	n1 := min(n/365, 3)
	n -= n1 * 365
	year = n400*400 + n100*100 + n4*4 + n1 + 1
	month = n/31 + 1
	if month < 12 && n >= before(year, month+1) {
		month++
	}
	return year, month, n - before(year, month) + 1
}

// AppendTo appends d as YYYY-MM-DD.
func (d Day) AppendTo(dst []byte) []byte {
	y, m, n := d.Date()
	return append(dst,
		byte('0'+y/1000), byte('0'+y/100%10), byte('0'+y/10%10), byte('0'+y%10), '-',
		byte('0'+m/10), byte('0'+m%10), '-', byte('0'+n/10), byte('0'+n%10))
}

// String returns d as YYYY-MM-DD, and "-" for no day.
func (d Day) String() string {
	if d < MinDay || d > MaxDay {
		return "-"
	}
	return string(d.AppendTo(make([]byte, 0, 10)))
}

// Time returns midnight UTC of d, for drivers that speak time.Time.
func (d Day) Time() time.Time {
	y, m, n := d.Date()
	return time.Date(y, time.Month(m), n, 0, 0, 0, 0, time.UTC)
}

var daysBefore = [12]int{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334}

// before returns the number of days of year before the first of month, 1..12.
func before(year, month int) int {
	if month > 2 && leap(year) {
		return daysBefore[month-1] + 1
	}
	return daysBefore[month-1]
}

func leap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func daysIn(year, month int) int {
	switch month {
	case 2:
		if leap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}
