package workload

import (
	"cmp"
	"fmt"

	"amends/internal/ledger"
)

// RetailOptions describe a synthetic retail history. Zero values are the year of the real one in small: 60 items in 8
// countries, 374 days from 2010-12-01, 20,000 sales.
type RetailOptions struct {
	Seed  uint64
	Items int
	Days  int // 1..ledger.HorizonDays
	Sales int
}

var countries = [...]string{"United Kingdom", "Germany", "France", "EIRE", "Spain", "Belgium", "Netherlands", "Portugal"}

// lagQuantiles is the law of days from sale to cancellation in the "Online Retail" data set: median 9, p95 134, max 368.
// Between these points it is taken as linear.
var lagQuantiles = [...]struct{ permille, days int }{{0, 0}, {250, 2}, {500, 9}, {750, 35}, {900, 90}, {950, 134}, {990, 250}, {1000, 368}}

// cancelPermille is the share of sales that are cancelled, in whole or in part: 2,487 of 45,085 rows.
const cancelPermille = 55

// SyntheticRetail makes a retail history by the law of the real one, mapped like it (ReadRetail): sales, write-offs and
// cancellations in the order of days. As in the real file about half of the cancellations cancel a sale in part, three in
// ten find no sale and are receipts, and the others cancel a sale in whole.
func SyntheticRetail(o RetailOptions) *Dataset {
	o.Items, o.Days, o.Sales = cmp.Or(o.Items, 60), cmp.Or(o.Days, 374), cmp.Or(o.Sales, 20_000)
	origin, _ := ledger.DateOf(2010, 12, 1)
	s := &shop{r: NewRand(o.Seed), origin: origin, retailer: retailer{ledgerOf: ledgerOf{issued: make(map[ledger.StockKey]int64)}, sales: make(map[buyer][]*sale)},
		due: make([][]claim, o.Days)}
	sold := 0
	for day := range o.Days {
		for ; sold < o.Sales*(day+1)/o.Days; sold++ {
			s.sale(o, sold, day)
		}
		for i, c := range s.due[day] {
			s.cancellation(c.buyer, fmt.Sprintf("C%d:%d", 600_000+day, i+1), origin+ledger.Day(day), c.quantity)
		}
	}
	return s.dataset(origin)
}

// shop makes a synthetic retail history.
type shop struct {
	r *Rand
	retailer
	due    [][]claim // cancellations of each day
	origin ledger.Day
}

type claim struct {
	buyer    buyer
	quantity int64
}

// sale sells, and decides on which day that is cancelled, if ever.
func (s *shop) sale(o RetailOptions, n, day int) {
	item := s.r.Below(s.r.Below(o.Items) + 1) // few items sell most
	where := 0
	if s.r.Percent(12) {
		where = s.r.Below(len(countries))
	}
	b := buyer{customer: fmt.Sprint(12_000 + s.r.Below(4_000)), key: ledger.StockKey{Item: fmt.Sprintf("%d%c", 20_000+item*37, 'A'+item%5), Location: countries[where]}}
	txn, on := fmt.Sprintf("%d:%d", 536_365+n/8, n%8+1), s.origin+ledger.Day(day)
	q := int64(pick(s.r, []int{1, 1, 1, 1, 2, 2, 2, 3, 4, 6, 6, 8, 10, 12, 24, 48}))
	if s.r.Below(2_000) == 0 {
		s.issue(b.key, txn, on, q) // a write-off
		return
	}
	s.sell(b, txn, on, q)
	if s.r.Below(1_000) >= cancelPermille {
		return
	}
	at := day + s.lag()
	if at >= o.Days {
		return
	}
	switch n := s.r.Below(10); {
	case n < 3:
		b.customer = ""
	case n < 9 && q > 1:
		q = int64(s.r.Between(1, int(q)-1))
	}
	s.due[at] = append(s.due[at], claim{buyer: b, quantity: q})
}

// lag draws the days from a sale to its cancellation.
func (s *shop) lag() int {
	u := s.r.Below(1_000)
	for i := 1; ; i++ {
		if low, high := lagQuantiles[i-1], lagQuantiles[i]; u < high.permille {
			return low.days + (u-low.permille)*(high.days-low.days)/(high.permille-low.permille)
		}
	}
}
