package workload

import (
	"fmt"
	"slices"

	"amends/internal/ledger"
	"amends/internal/manifest"
)

// Dataset is a source history with the configuration it needs, in memory.
type Dataset struct {
	Setting    Setting
	Assertions []ledger.Assertion // in order of arrival
}

// RowError says which row of a data set cannot be converted, and why. Rows count from 1, the header or the first line
// of the file being row 1.
type RowError struct {
	Problem string
	Row     int
}

// Error returns one line with the row and the problem.
func (e *RowError) Error() string { return fmt.Sprintf("convert row %d: %s", e.Row, e.Problem) }

// ledgerOf collects a data set key by key.
type ledgerOf struct {
	issued map[ledger.StockKey]int64 // units issued per key, of every key seen
	out    []ledger.Assertion
}

func (l *ledgerOf) issue(k ledger.StockKey, txn string, d ledger.Day, q int64) {
	l.issued[k] += q
	l.move(k, txn, 1, d, ledger.Issue, q)
}

func (l *ledgerOf) move(k ledger.StockKey, txn string, revision int, d ledger.Day, kind ledger.Kind, q int64) {
	if _, ok := l.issued[k]; !ok {
		l.issued[k] = 0
	}
	l.out = append(l.out, ledger.Assertion{Key: k, TxnID: txn, Revision: ledger.Revision(revision),
		Payload: ledger.Payload{State: ledger.Active, Kind: kind, Day: d, Quantity: ledger.Quantity(q)}})
}

func (l *ledgerOf) cancel(k ledger.StockKey, txn string, revision int) {
	l.out = append(l.out, ledger.Assertion{Key: k, TxnID: txn, Revision: ledger.Revision(revision), Payload: ledger.Payload{State: ledger.Cancelled}})
}

// dataset lists the keys on the partition of the default partitioner, two partitions: the opening balance of a key is
// all that it issues, its threshold a tenth of that, rounded down.
func (l *ledgerOf) dataset(origin ledger.Day) *Dataset {
	d := &Dataset{Setting: Setting{Origin: origin, Partitions: 2}, Assertions: l.out}
	for k, sum := range l.issued {
		limit := sum / 10
		d.Setting.Keys = append(d.Setting.Keys, manifest.StockKey{Key: k, Partition: defaultPartition(k, 2),
			Terms: manifest.Terms{OpeningBalance: sum, Threshold: &limit}})
	}
	slices.SortFunc(d.Setting.Keys, func(a, b manifest.StockKey) int { return a.Key.Compare(b.Key) })
	return d
}
