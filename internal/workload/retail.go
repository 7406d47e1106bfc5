package workload

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"amends/internal/ledger"
)

// retailColumns are the columns of the "Online Retail" data set, in their order.
var retailColumns = [...]string{"InvoiceNo", "StockCode", "Description", "Quantity", "InvoiceDate", "UnitPrice", "CustomerID", "Country"}

// Positions of the columns that the conversion reads.
const (
	colInvoice  = 0
	colStock    = 1
	colQuantity = 3
	colDate     = 4
	colCustomer = 6
	colCountry  = 7
)

// ReadRetail converts the rows of the "Online Retail" data set (UCI, CC BY 4.0), which are in time order. A sale is an
// issue; a row with a negative quantity is a stock write-off, an issue too; a cancellation (an invoice number with a C)
// revises the latest earlier sale of the same customer, stock code and country with enough left, down to a cancelled
// one, and is a receipt where there is none. It fails with *RowError, or with the reader's error.
func ReadRetail(r io.Reader) (*Dataset, error) {
	c := &retailer{ledgerOf: ledgerOf{issued: make(map[ledger.StockKey]int64)}, rows: make(map[string]int), sales: make(map[buyer][]*sale)}
	in := csv.NewReader(r)
	in.ReuseRecord = true
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read retail data: %w", err)
		}
		if c.row++; c.row == 1 {
			err = checkHeader(row)
		} else {
			err = c.convert(row)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(c.out) == 0 {
		return nil, &RowError{Row: c.row, Problem: "the file has no rows"}
	}
	return c.dataset(c.origin), nil
}

func checkHeader(row []string) error {
	for i, name := range retailColumns {
		if i >= len(row) || strings.TrimPrefix(row[i], "\ufeff") != name {
			return &RowError{Row: 1, Problem: "the columns are not " + strings.Join(retailColumns[:], ",")}
		}
	}
	return nil
}

// retailer converts row by row.
type retailer struct {
	ledgerOf
	rows   map[string]int    // rows so far of each invoice
	sales  map[buyer][]*sale // of known customers, in order
	origin ledger.Day
	row    int
}

type buyer struct {
	customer string
	key      ledger.StockKey
}

// sale is an ordinary row and what of it is not cancelled.
type sale struct {
	txn      string
	left     int64
	day      ledger.Day
	revision int
}

func (c *retailer) convert(row []string) error {
	invoice := strings.Clone(row[colInvoice])
	k := ledger.StockKey{Item: strings.Clone(row[colStock]), Location: strings.Clone(row[colCountry])}
	c.rows[invoice]++
	txn := invoice + ":" + strconv.Itoa(c.rows[invoice])
	for _, id := range []string{k.Item, k.Location, txn} {
		if !ledger.ValidIdentifier(id) || !utf8.ValidString(id) {
			return &RowError{Row: c.row, Problem: fmt.Sprintf("%q is not an identifier of 1 to %d bytes of UTF-8", id, ledger.MaxIdentifierBytes)}
		}
	}
	date, _, _ := strings.Cut(row[colDate], " ")
	day, ok := ledger.ParseDay(date)
	if !ok {
		return &RowError{Row: c.row, Problem: fmt.Sprintf("InvoiceDate %q does not begin with a date YYYY-MM-DD", row[colDate])}
	}
	if c.origin == 0 {
		c.origin = day
	}
	if day < c.origin || day-c.origin >= ledger.HorizonDays {
		return &RowError{Row: c.row, Problem: fmt.Sprintf("day %s is outside the horizon that begins on %s: rows are in time order", day, c.origin)}
	}
	q, err := strconv.ParseInt(row[colQuantity], 10, 32)
	if err != nil || q == 0 {
		return &RowError{Row: c.row, Problem: fmt.Sprintf("Quantity %q is not a whole number other than 0", row[colQuantity])}
	}
	b := buyer{customer: strings.Clone(row[colCustomer]), key: k}
	switch {
	case strings.HasPrefix(invoice, "C"):
		c.cancellation(b, txn, day, max(q, -q))
	case q < 0:
		c.issue(k, txn, day, -q)
	default:
		c.sell(b, txn, day, q)
	}
	return nil
}

func (c *retailer) sell(b buyer, txn string, d ledger.Day, q int64) {
	c.issue(b.key, txn, d, q)
	if b.customer != "" {
		c.sales[b] = append(c.sales[b], &sale{txn: txn, left: q, day: d, revision: 1})
	}
}

// cancellation takes q units back from the latest sale that has them.
func (c *retailer) cancellation(b buyer, txn string, d ledger.Day, q int64) {
	sales := c.sales[b]
	for i := len(sales) - 1; i >= 0; i-- {
		s := sales[i]
		if s.left < q {
			continue
		}
		s.left -= q
		s.revision++
		if s.left == 0 {
			c.cancel(b.key, s.txn, s.revision)
		} else {
			c.move(b.key, s.txn, s.revision, s.day, ledger.Issue, s.left)
		}
		return
	}
	c.move(b.key, txn, 1, d, ledger.Receipt, q)
}
