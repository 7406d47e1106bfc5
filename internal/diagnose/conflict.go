package diagnose

import (
	"fmt"
	"time"

	"amends/internal/health"
	"amends/internal/ledger"
	"amends/internal/store/postgres/reader"
	"amends/internal/wire"
)

// current explains the reasons of a page of blocked keys.
func (r *reading) current(after reader.Place) error {
	found, err := r.BlockedKeys(r.ctx, after.Partition, int64(after.Offset), r.limit+1)
	if err != nil {
		return err
	}
	keys, more := cut(found, r.limit)
	for i := range keys {
		if err := r.explain(&keys[i]); err != nil {
			return err
		}
	}
	if more {
		last := keys[len(keys)-1]
		r.report.CurrentNext = fmt.Sprintf("%d/%d", last.Cause.Partition, last.After)
	}
	return nil
}

// explain adds a problem a reason: the assertions that make it come from one scan of the key's rows.
func (r *reading) explain(k *reader.Blocked) error {
	seen := health.BlockedKey(*k, r.report.At)
	var txns []string
	for _, reason := range k.Status.Reasons {
		if reason.Code == ledger.Ambiguous {
			txns = append(txns, reason.TxnID)
		}
	}
	recorded, err := r.recorded(k.Cause.Partition, k.KeyID, txns)
	if err != nil {
		return err
	}
	for i, reason := range k.Status.Reasons {
		p := Problem{Since: seen.Since, Item: k.Key.Item, Location: k.Key.Location, Code: seen.Reasons[i].Code, TxnID: reason.TxnID, Day: seen.Reasons[i].Day,
			Revision: int64(reason.Revision), Partition: int32(k.Cause.Partition), More: k.Status.More, Candidates: []Candidate{}}
		switch reason.Code {
		case ledger.Ambiguous:
			history := recorded[reason.TxnID]
			p.Candidates = candidates(k.Key, k.Cause.Partition, history, reason.Revision, highest(history) == reason.Revision)
		case ledger.CountsDisagree:
			if p.Candidates, err = r.counts(k, reason.Day); err != nil {
				return err
			}
		}
		r.report.Current = append(r.report.Current, p)
	}
	return nil
}

// recorded returns the history of each transaction. A key that the worker does not have has none.
func (r *reading) recorded(p ledger.Partition, key ledger.KeyID, txns []string) (map[string][]reader.Recorded, error) {
	if len(txns) == 0 || key < 0 {
		return nil, nil
	}
	rows, err := r.RecordedOf(r.ctx, p, key, txns)
	if err != nil {
		return nil, err
	}
	out := map[string][]reader.Recorded{}
	for _, row := range rows {
		out[row.TxnID] = append(out[row.TxnID], row)
	}
	return out, nil
}

// superseded lists a page of conflicts, each at the first of its records.
func (r *reading) superseded(after reader.Place) error {
	found, err := r.ConflictingRecords(r.ctx, after, r.limit+1)
	if err != nil {
		return err
	}
	page, more := cut(found, r.limit)
	if more {
		last := page[len(page)-1].Place
		r.report.SupersededNext = fmt.Sprintf("%d/%d/%d", last.Partition, last.KeyID, last.Offset)
	}
	for len(page) > 0 {
		n := 1
		for n < len(page) && page[n].Place.Partition == page[0].Place.Partition && page[n].Place.KeyID == page[0].Place.KeyID {
			n++
		}
		if err := r.ofKey(page[:n]); err != nil {
			return err
		}
		page = page[n:]
	}
	return nil
}

// ofKey adds the conflicts of one key that begin with one of the given records and do not stand among the current ones.
func (r *reading) ofKey(records []reader.Conflicting) error {
	var txns []string
	for _, c := range records {
		txns = append(txns, c.TxnID)
	}
	key, p := records[0].Key, records[0].Place.Partition
	recorded, err := r.recorded(p, records[0].Place.KeyID, txns)
	if err != nil {
		return err
	}
	for _, c := range records {
		history := recorded[c.TxnID]
		top := highest(history)
		if first(history, c.Revision) != c.Place.Offset || top == c.Revision && r.listed(c) {
			continue
		}
		r.report.Superseded = append(r.report.Superseded, Conflict{Item: key.Item, Location: key.Location, TxnID: c.TxnID, Revision: int64(c.Revision),
			Highest: int64(top), Partition: int32(p), Current: top == c.Revision, Candidates: candidates(key, p, history, c.Revision, top == c.Revision)})
	}
	return nil
}

// listed reports whether a conflict stands among the current ones.
func (r *reading) listed(c reader.Conflicting) bool {
	for i := range r.report.Current {
		if p := &r.report.Current[i]; p.Item == c.Key.Item && p.Location == c.Key.Location && p.TxnID == c.TxnID && p.Revision == int64(c.Revision) {
			return true
		}
	}
	return false
}

// first is where a revision's conflict began: its first record that was classified as one.
func first(history []reader.Recorded, revision ledger.Revision) ledger.Offset {
	for _, h := range history {
		if h.Revision == revision && (h.Class == ledger.Conflict || h.Class == ledger.StaleConflict) {
			return h.Offset
		}
	}
	return -1
}

func highest(history []reader.Recorded) (top ledger.Revision) {
	for _, h := range history {
		top = max(top, h.Revision)
	}
	return top
}

// candidates are the payloads of one revision of a transaction in the order in which they came; with resolve each has the record
// that would make it apply: the same payload at the next revision (S4).
func candidates(key ledger.StockKey, p ledger.Partition, history []reader.Recorded, revision ledger.Revision, resolve bool) []Candidate {
	out := []Candidate{}
	at := map[ledger.Payload]int{}
	for _, h := range history {
		if h.Revision != revision {
			continue
		}
		if i, ok := at[h.Payload]; ok {
			out[i].Records++
			continue
		}
		at[h.Payload] = len(out)
		c := candidate(p, h)
		if resolve && revision < ledger.MaxCounter {
			c.Resolve = string(wire.AppendAssertion(nil, ledger.Assertion{Key: key, TxnID: h.TxnID, Revision: revision + 1, Payload: h.Payload}))
		}
		out = append(out, c)
	}
	return out
}

func candidate(p ledger.Partition, h reader.Recorded) Candidate {
	c := Candidate{Decided: h.Decided.UTC(), Broker: time.UnixMilli(h.BrokerMS).UTC(), TxnID: h.TxnID, Class: h.Class.String(), State: h.Payload.State.String(),
		Revision: int64(h.Revision), Offset: int64(h.Offset), Partition: int32(p), Records: 1}
	if h.Payload.State == ledger.Active {
		quantity := int64(h.Payload.Quantity)
		c.Kind, c.Day, c.Quantity = h.Payload.Kind.String(), h.Payload.Day.String(), &quantity
	}
	return c
}

// counts are the counts that apply to a day and disagree with another of the same moment, each with the record that withdraws it.
func (r *reading) counts(k *reader.Blocked, day ledger.Day) ([]Candidate, error) {
	out := []Candidate{}
	if k.KeyID < 0 {
		return out, nil
	}
	txns, err := r.CountsOf(r.ctx, k.Cause.Partition, k.KeyID, day)
	if err != nil {
		return nil, err
	}
	recorded, err := r.recorded(k.Cause.Partition, k.KeyID, txns)
	if err != nil {
		return nil, err
	}
	quantities := map[ledger.Kind]map[ledger.Quantity]bool{}
	var apply []reader.Recorded
	for _, txn := range txns {
		h, ok := authority(recorded[txn])
		if !ok || !h.Payload.Kind.IsCount() || h.Payload.Day != day {
			continue
		}
		apply = append(apply, h)
		if quantities[h.Payload.Kind] == nil {
			quantities[h.Payload.Kind] = map[ledger.Quantity]bool{}
		}
		quantities[h.Payload.Kind][h.Payload.Quantity] = true
	}
	for _, h := range apply {
		if len(quantities[h.Payload.Kind]) < 2 {
			continue
		}
		c := candidate(k.Cause.Partition, h)
		if h.Revision < ledger.MaxCounter {
			c.Resolve = string(wire.AppendAssertion(nil, ledger.Assertion{Key: k.Key, TxnID: h.TxnID, Revision: h.Revision + 1, Payload: ledger.Payload{State: ledger.Cancelled}}))
		}
		out = append(out, c)
	}
	return out, nil
}

// authority returns the assertion that applies, false if the transaction is ambiguous (S4).
func authority(history []reader.Recorded) (found reader.Recorded, ok bool) {
	top := highest(history)
	for _, h := range history {
		switch {
		case h.Revision != top:
		case !ok:
			found, ok = h, true
		case h.Payload != found.Payload:
			return found, false
		}
	}
	return found, ok
}
