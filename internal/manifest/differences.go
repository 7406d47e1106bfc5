package manifest

import (
	"fmt"

	"amends/internal/ledger"
)

// Differences names each member in which the configuration given differs from the one stored, in the order of S2,
// keys by item then location bytes; nil if they are the same. Equal digests have no differences, and the reverse.
func Differences(stored, given *Config) []string {
	var d []string
	differ := func(member string, was, is any) {
		if was != is {
			d = append(d, fmt.Sprintf("%s: stored %v, given %v", member, was, is))
		}
	}
	differ("namespace", stored.Namespace, given.Namespace)
	differ("source_incarnation", stored.SourceIncarnation, given.SourceIncarnation)
	differ("ledger_origin", stored.LedgerOrigin, given.LedgerOrigin)
	differ("partitions", stored.Partitions, given.Partitions)
	differ("quantity_scale", stored.QuantityScale, given.QuantityScale)
	for i, j := 0, 0; i < len(stored.StockKeys) || j < len(given.StockKeys); {
		order := compareAt(stored.StockKeys, given.StockKeys, i, j)
		switch {
		case order < 0:
			d = append(d, keyName(stored.StockKeys[i].Key)+": stored, not given")
			i++
		case order > 0:
			d = append(d, keyName(given.StockKeys[j].Key)+": given, not stored")
			j++
		default:
			was, is := stored.StockKeys[i], given.StockKeys[j]
			differ(keyName(was.Key)+" partition", was.Partition, is.Partition)
			differTerms(keyName(was.Key)+" ", was.Terms, is.Terms, differ)
			i++
			j++
		}
	}
	switch was, is := stored.OpenKeys, given.OpenKeys; {
	case was != nil && is != nil:
		differTerms("open_keys ", *was, *is, differ)
	case was != nil:
		d = append(d, "open_keys: stored, not given")
	case is != nil:
		d = append(d, "open_keys: given, not stored")
	}
	return d
}

// compareAt orders a[i] and b[j] by key; a list that has ended comes last.
func compareAt(a, b []StockKey, i, j int) int {
	switch {
	case i == len(a):
		return 1
	case j == len(b):
		return -1
	}
	return a[i].Key.Compare(b[j].Key)
}

func differTerms(member string, was, is Terms, differ func(string, any, any)) {
	differ(member+"opening_balance", was.OpeningBalance, is.OpeningBalance)
	differ(member+"threshold", string(appendOptional(nil, was.Threshold)), string(appendOptional(nil, is.Threshold)))
}

func keyName(k ledger.StockKey) string {
	return fmt.Sprintf("stock_keys (%q, %q)", k.Item, k.Location)
}
