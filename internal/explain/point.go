package explain

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"amends/internal/ledger"
)

// Point is a moment of knowledge: everything that the source records below an offset of a partition say, or everything
// until a time. One of the two is set.
type Point struct {
	Time      time.Time
	Partition *ledger.Partition // nil where only the offset was named
	Offset    ledger.Frontier   // exclusive; meaningful where Time is zero
}

// PointForms says how a point is written, for help texts.
const PointForms = "OFFSET, PARTITION/OFFSET (records below it) or a time such as 2026-01-31T15:04Z"

// ParsePoint reads a point: OFFSET, PARTITION/OFFSET, or a time of RFC 3339 with its zone, whose seconds may be left out.
func ParsePoint(s string) (Point, error) {
	partition, offset, both := strings.Cut(s, "/")
	if !both {
		partition, offset = "", s
	}
	if n, ok := digits(offset, math.MaxInt64); ok {
		p := Point{Offset: ledger.Frontier(n)}
		if both {
			at, ok := digits(partition, ledger.MaxPartitions-1)
			if !ok {
				return Point{}, fmt.Errorf("%q: a partition is 0..%d", s, ledger.MaxPartitions-1)
			}
			in := ledger.Partition(at)
			p.Partition = &in
		}
		return p, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if t, err := time.Parse(layout, s); err == nil {
			if t.IsZero() {
				t = t.Add(1) // the zero time stands for none; nothing was known at either
			}
			return Point{Time: t.UTC()}, nil
		}
	}
	if _, day := ledger.ParseDay(s); day {
		return Point{}, fmt.Errorf("%q is a business day, not a time: write when, with its zone, such as %sT23:59:59Z", s, s)
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if _, err := time.Parse(layout, s); err == nil {
			return Point{}, fmt.Errorf("%q has no zone: write %sZ for UTC, or an offset such as +01:00", s, s)
		}
	}
	return Point{}, fmt.Errorf("%q: %s", s, PointForms)
}

// digits reads a whole number without a sign.
func digits(s string, most int64) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n <= most
}

// PointError is a point that does not fit what is asked: the caller names another one.
type PointError struct{ text string }

// Error returns one line.
func (e *PointError) Error() string { return e.text }

// elsewhere refuses a point of a partition that the key is not on.
func elsewhere(home, named ledger.Partition) *PointError {
	return &PointError{fmt.Sprintf("the key lives on partition %d, and the point is of partition %d", home, named)}
}
