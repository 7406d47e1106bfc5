package explain

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
)

// Question is what is asked of one stock key.
type Question struct {
	At    *Point // as known at; nil is now
	Key   ledger.StockKey
	Day   ledger.Day          // as of; 0 is the latest day having a balance
	From  ledger.Day          // of a range, included; 0 is open
	Kinds []ledger.OutputKind // of outputs; nil is all
	Most  int                 // lines of movements before they are summed up by day
}

// asks reports whether an output of that kind and day is asked for. A status belongs to no day.
func (q *Question) asks(c *ledger.Change) bool {
	if c.Kind != ledger.TrustStatus && q.Day != 0 && c.Day != q.Day {
		return false
	}
	return q.Kinds == nil || slices.Contains(q.Kinds, c.Kind)
}

// Answer is what every answer about one key begins with. Status is nil where no record was known.
type Answer struct {
	Status  *ledger.Status
	Blocked *Cause // the record that froze the key, nil while it is READY
	Key     reader.StoredKey
	Known   Known
	Balance Balance
	// Threshold is that of the key's configuration, nil where it has no alerts (S2).
	Threshold *int64
}

// Version is one published version of an output (S8), with the record behind it.
type Version struct {
	Published *reader.Publication // nil until there is a receipt
	Cause     Cause
	Output    ledger.OutputID
	Change    ledger.Change
	Sequence  ledger.Sequence
	Threshold int64 // of a present alert
	Index     int
	Count     int
}

// Explanation is why a balance is what it is: every version of the outputs that were asked for, and the lines that add up
// to the balance.
type Explanation struct {
	Versions []Version
	Lines    []Line
	Answer
	Day ledger.Day // asked, 0 for the latest
}

// Range is the balance as of a day, and of the days before it that were asked for.
type Range struct {
	Rows []Balance
	Answer
}

// walk reads a key's decisions below a point into an account, calling fn, unless it is nil, with every version of those
// outputs that q asks for, and published with where it lies.
func walk(ctx context.Context, from *reader.Snapshot, cfg *manifest.Config, q *Question, published bool, fn func(*Version) error) (*Account, Answer, error) {
	key, err := Find(ctx, from, cfg, q.Key)
	if err != nil {
		return nil, Answer{}, err
	}
	terms, ok := cfg.Terms(q.Key)
	if !ok {
		return nil, Answer{}, fmt.Errorf("key of id %d is not of this configuration: %w", key.ID, store.ErrIntegrity)
	}
	answer := Answer{Key: key, Threshold: terms.Threshold}
	if answer.Known, err = known(ctx, from, key.Partition, q.At); err != nil {
		return nil, answer, err
	}
	a := NewAccount(key.Partition, cfg.LedgerOrigin, terms.OpeningBalance)
	err = from.Entries(ctx, key, 0, answer.Known.Frontier, published, func(e *reader.Entry) error {
		c := a.Add(e)
		if c.Class == ledger.Conflict && c.Before == nil {
			return fmt.Errorf("the conflict of partition %d offset %d contradicts nothing: %w", key.Partition, e.Decision.Offset, store.ErrIntegrity)
		}
		for i := range e.Decision.Changes {
			if fn == nil || !q.asks(&e.Decision.Changes[i]) {
				continue
			}
			v := version(cfg, e, &c, i)
			if err := fn(&v); err != nil {
				return err
			}
		}
		return nil
	})
	answer.Status, answer.Blocked, answer.Balance = a.Status(), a.Blocked(), a.Balance(q.Day)
	return a, answer, err
}

// Of explains the balance of a key as of a day.
func Of(ctx context.Context, from *reader.Snapshot, cfg *manifest.Config, q *Question) (*Explanation, error) {
	x := &Explanation{Day: q.Day}
	account, answer, err := walk(ctx, from, cfg, q, false, func(v *Version) error {
		x.Versions = append(x.Versions, *v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	x.Answer, x.Lines = answer, account.Lines(q.Day, q.Most)
	if total := x.Lines[len(x.Lines)-1].Total; total.Cmp(big.NewInt(x.Balance.Close)) != 0 {
		return nil, fmt.Errorf("the assertions of %q %q add up to %v and %d was published: %w", q.Key.Item, q.Key.Location, total, x.Balance.Close, store.ErrIntegrity)
	}
	sequences := make([]ledger.Sequence, len(x.Versions))
	for i := range x.Versions {
		sequences[i] = x.Versions[i].Sequence
	}
	published, err := from.Publications(ctx, answer.Key.Partition, sequences)
	if err != nil {
		return nil, err
	}
	for i := range x.Versions {
		if p, ok := published[x.Versions[i].Sequence]; ok {
			x.Versions[i].Published = &p
		}
	}
	return x, nil
}

func version(cfg *manifest.Config, e *reader.Entry, c *Cause, i int) Version {
	d := &e.Decision
	v := Version{Output: ledger.OutputID{Key: d.Assertion.Key, Kind: d.Changes[i].Kind, Day: d.Changes[i].Day}, Change: d.Changes[i],
		Cause: *c, Sequence: d.Sequence + ledger.Sequence(i), Index: i, Count: len(d.Changes)}
	if v.Change.Kind == ledger.Alert && v.Change.Present {
		if terms, _ := cfg.Terms(d.Assertion.Key); terms.Threshold != nil {
			v.Threshold = *terms.Threshold
		}
	}
	if p, ok := e.Published(i); ok {
		v.Published = &p
	}
	return v
}

// Balances answers with the balance as of q.Day, and with every day of q.From..q.Day that has one where days is set.
func Balances(ctx context.Context, from *reader.Snapshot, cfg *manifest.Config, q *Question, days bool) (*Range, error) {
	account, answer, err := walk(ctx, from, cfg, q, false, nil)
	if err != nil {
		return nil, err
	}
	r := &Range{Answer: answer}
	if days {
		r.Rows = account.Balances(q.From, q.Day)
	}
	return r, nil
}

// Told counts the versions of a history.
type Told struct {
	Answer
	Versions    int64
	Corrections int64 // versions above 1, withdrawals included
	Withdrawals int64
}

// History calls fn, unless it is nil, with every version of the key's outputs that q asks for, in the order of their
// emission, and counts them.
func History(ctx context.Context, from *reader.Snapshot, cfg *manifest.Config, q *Question, fn func(*Version) error) (*Told, error) {
	told := &Told{}
	account, answer, err := walk(ctx, from, cfg, q, fn != nil, func(v *Version) error {
		told.count(&v.Change)
		if fn == nil {
			return nil
		}
		return fn(v)
	})
	if err != nil {
		return nil, err
	}
	told.Answer = answer
	told.Balance = account.Balance(0) // whatever the day, the balance answered with is the latest
	return told, nil
}

func (t *Told) count(c *ledger.Change) {
	t.Versions++
	if c.Version > 1 {
		t.Corrections++
	}
	if !c.Present {
		t.Withdrawals++
	}
}
