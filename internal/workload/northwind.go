package workload

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"amends/internal/ledger"
)

// northwindTable begins every row of the table that is converted.
const northwindTable = "INSERT INTO `inventory_transactions` "

// NorthwindLocation is the location of every key: the data names none.
const NorthwindLocation = "northwind"

// ReadNorthwind converts table inventory_transactions of the Northwind data set (BSD-2-Clause): item is the product id,
// transaction type 1 (purchased) is a receipt, 2 (sold) and 4 (waste) are issues, 3 (on hold) is left out. A row is
// revision 1 on the day it was created and, where it was modified at another time, revision 2 on the day of that.
// Assertions come in the order of those times. Keys open with 0 and have no threshold; they are listed on the partition
// of the default partitioner, two partitions. It fails with *RowError, or with the reader's error.
func ReadNorthwind(r io.Reader) (*Dataset, error) {
	var events []stamped
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if !strings.HasPrefix(lines.Text(), northwindTable) {
			continue
		}
		row, err := northwindRow(lines.Text())
		if err != nil {
			return nil, &RowError{Row: n, Problem: err.Error()}
		}
		events = append(events, row...)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read northwind data: %w", err)
	}
	if len(events) == 0 {
		return nil, &RowError{Row: 1, Problem: "the file has no rows of inventory_transactions"}
	}
	slices.SortStableFunc(events, func(a, b stamped) int { return cmp.Compare(a.at, b.at) })
	l := ledgerOf{issued: make(map[ledger.StockKey]int64)}
	for _, e := range events {
		p := e.said.Payload
		l.move(e.said.Key, e.said.TxnID, int(e.said.Revision), p.Day, p.Kind, int64(p.Quantity))
	}
	d := l.dataset(events[0].said.Payload.Day)
	for i := range d.Setting.Keys {
		d.Setting.Keys[i].OpeningBalance, d.Setting.Keys[i].Threshold = 0, nil
	}
	return d, nil
}

// stamped is an assertion and its time, YYYY-MM-DD hh:mm:ss.
type stamped struct {
	at   string
	said ledger.Assertion
}

// northwindRow reads id, type, created, modified, product and quantity, the first values of a row.
func northwindRow(line string) ([]stamped, error) {
	_, values, ok := strings.Cut(line, ") VALUES (")
	f := strings.SplitN(values, ", ", 7)
	if !ok || len(f) < 7 {
		return nil, fmt.Errorf("the row has not the values of inventory_transactions")
	}
	var kind ledger.Kind
	switch f[1] {
	case "1":
		kind = ledger.Receipt
	case "2", "4":
		kind = ledger.Issue
	case "3":
		return nil, nil
	default:
		return nil, fmt.Errorf("transaction_type %s is not 1, 2, 3 or 4", f[1])
	}
	q, err := strconv.ParseInt(f[5], 10, 64)
	if err != nil || q < 1 {
		return nil, fmt.Errorf("quantity %s is not a positive whole number", f[5])
	}
	var out []stamped
	for i, value := range f[2:4] {
		at := strings.Trim(value, "'")
		date, _, _ := strings.Cut(at, " ")
		day, ok := ledger.ParseDay(date)
		if !ok {
			return nil, fmt.Errorf("%s does not begin with a date YYYY-MM-DD", value)
		}
		if i == 1 && at == out[0].at {
			break
		}
		out = append(out, stamped{at: at, said: ledger.Assertion{Key: ledger.StockKey{Item: f[4], Location: NorthwindLocation}, TxnID: f[0],
			Revision: ledger.Revision(i + 1), Payload: ledger.Payload{State: ledger.Active, Kind: kind, Day: day, Quantity: ledger.Quantity(q)}}})
	}
	return out, nil
}
