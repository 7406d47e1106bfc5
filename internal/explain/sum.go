package explain

import (
	"cmp"
	"math/big"
	"slices"

	"amends/internal/ledger"
)

// LineKind says what a line of a sum is.
type LineKind string

// The kinds of lines. The others are the names of S3: receipt, issue, opening_count, closing_count.
const (
	OpeningBalance LineKind = "opening_balance" // where no count stands before it
	DayOfMovements LineKind = "day"             // all movements of one day, where there are too many to list
)

// Line is one part of a balance. Amount is what it adds, in units of 10^-scale; Total the sum so far, which like the sum of
// a day may pass int64 where the close does not (S5).
type Line struct {
	Amount    *big.Int
	Total     *big.Int
	TxnID     string // of an assertion
	Kind      LineKind
	Movements int64           // of a day: how many
	Revision  ledger.Revision // of an assertion
	Source    ledger.Offset   // of an assertion: the record that first stated it
	Day       ledger.Day      // 0 for the opening balance
}

// assertion is one contribution.
type assertion struct {
	id string
	Standing
}

// Lines returns the parts that the balance as of a day (0: the latest) is the sum of. The first is the opening balance or
// the latest count, which replaces everything before it (S5); counts that state the same follow it with the amount 0; then
// come the movements after it, or, where these are more than most, their sums by day.
func (a *Account) Lines(as ledger.Day, most int) []Line {
	var counted ledger.Day
	closing := false
	a.contributions(func(_ string, s Standing) {
		p := s.Payload
		if !p.Kind.IsCount() || as != 0 && p.Day > as || p.Day < counted {
			return
		}
		if p.Day > counted {
			counted, closing = p.Day, false
		}
		closing = closing || p.Kind == ledger.ClosingCount
	})
	var counts, movements []assertion
	a.contributions(func(id string, s Standing) {
		p := s.Payload
		switch {
		case as != 0 && p.Day > as:
		case p.Kind.IsCount():
			if p.Day == counted && closing == (p.Kind == ledger.ClosingCount) {
				counts = append(counts, assertion{id, s})
			}
		case p.Day > counted || p.Day == counted && !closing:
			movements = append(movements, assertion{id, s})
		}
	})
	return a.lines(counts, movements, most)
}

func (a *Account) lines(counts, movements []assertion, most int) []Line {
	order := func(x, y assertion) int {
		return cmp.Or(cmp.Compare(x.Payload.Day, y.Payload.Day), cmp.Compare(x.Offset, y.Offset))
	}
	slices.SortFunc(counts, order)
	slices.SortFunc(movements, order)
	var lines []Line
	if len(counts) == 0 {
		lines = append(lines, Line{Kind: OpeningBalance, Amount: big.NewInt(a.opening)})
	}
	for i, c := range counts {
		amount := int64(c.Payload.Quantity)
		if i > 0 {
			amount = 0
		}
		lines = append(lines, lineOf(c, amount))
	}
	for i := range movements {
		m := &movements[i]
		if last := len(lines) - 1; len(movements) > most && lines[last].Kind == DayOfMovements && lines[last].Day == m.Payload.Day {
			lines[last].Movements++
			lines[last].Amount.Add(lines[last].Amount, big.NewInt(m.Payload.Units()))
			continue
		}
		line := lineOf(*m, m.Payload.Units())
		if len(movements) > most {
			line = Line{Kind: DayOfMovements, Day: m.Payload.Day, Amount: line.Amount, Movements: 1}
		}
		lines = append(lines, line)
	}
	total := new(big.Int)
	for i := range lines {
		total = new(big.Int).Add(total, lines[i].Amount)
		lines[i].Total = total
	}
	return lines
}

func lineOf(a assertion, amount int64) Line {
	return Line{Kind: LineKind(a.Payload.Kind.String()), Day: a.Payload.Day, TxnID: a.id, Revision: a.Revision, Source: a.Offset, Amount: big.NewInt(amount)}
}
