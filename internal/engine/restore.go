package engine

import (
	"errors"
	"fmt"

	"amends/internal/authority"
	"amends/internal/fold"
	"amends/internal/ledger"
)

var (
	// ErrHistory is returned by Restore for decisions that cannot be a key's history, or that do not derive what they
	// published. The caller stops for an operator (exit 11).
	ErrHistory = errors.New("stored history contradicts itself")
	// ErrSnapshot is returned by Restore for a snapshot that is damaged or of another format. It is no authority: the
	// caller may restore from every decision instead.
	ErrSnapshot = errors.New("unusable key snapshot")
)

// Restore caches the state of a key from what was committed: a snapshot (nil: none), and every decision of the key
// after it, in offset order, of which it reads Offset, Assertion, Class and Changes. A key that is not known has
// neither. The state is checked: the classes must come out again, the versions follow one another, and the evidence
// derive what was published. It fails with ErrHistory or ErrSnapshot, and then caches nothing.
func (s *States) Restore(key ledger.StockKey, id ledger.KeyID, known bool, snapshot []byte, decisions []ledger.Decision) error {
	if err := s.restore(key, id, known, snapshot, decisions); err != nil {
		return fmt.Errorf("restore key %q %q of partition %d: %w", key.Item, key.Location, s.partition, err)
	}
	return nil
}

func (s *States) restore(key ledger.StockKey, id ledger.KeyID, known bool, snapshot []byte, decisions []ledger.Decision) error {
	terms, configured := s.cfg.Terms(key)
	if !configured {
		return fmt.Errorf("%w: the key is not of this configuration", ErrHistory)
	}
	if known == (snapshot == nil && len(decisions) == 0) {
		return fmt.Errorf("%w: known %v with %d decisions", ErrHistory, known, len(decisions))
	}
	k := &state{key: key, terms: terms, id: id, known: known, txns: authority.New(), days: fold.New(s.cfg.LedgerOrigin)}
	if snapshot != nil {
		if err := k.decode(snapshot, s.cfg.LedgerOrigin); err != nil {
			return err
		}
	}
	for i := range decisions {
		d := &decisions[i]
		if i > 0 && d.Offset <= decisions[i-1].Offset {
			return fmt.Errorf("%w: offset %d after %d", ErrHistory, d.Offset, decisions[i-1].Offset)
		}
		if err := k.replay(d, s.cfg.LedgerOrigin); err != nil {
			return fmt.Errorf("%w: offset %d: %w", ErrHistory, d.Offset, err)
		}
	}
	if known && !k.consistent() {
		return fmt.Errorf("%w: the evidence derives other outputs than were published", ErrHistory)
	}
	if old := s.keys[key]; old != nil {
		s.remove(old)
	}
	s.insert(k)
	return nil
}

// replay applies one committed decision without deriving anything: its changes are what was derived.
func (k *state) replay(d *ledger.Decision, origin ledger.Day) error {
	a := &d.Assertion
	if d.Rejection != 0 || a.Key != k.key || !ledger.ValidIdentifier(a.TxnID) || a.Revision < 1 || !validPayload(a.Payload, origin) {
		return errors.New("not a valid assertion of this key")
	}
	e := k.txns.Record(a.TxnID, a.Revision, a.Payload)
	if e.Class != d.Class {
		return fmt.Errorf("class %v recorded, %v derived", d.Class, e.Class)
	}
	if e.Before != e.After {
		k.days.Move(e.Before, e.After)
	}
	if !validChanges(d.Changes, origin) || !k.days.Commit(d.Changes) {
		return errors.New("outputs do not follow those before")
	}
	if n := len(d.Changes); n > 0 && d.Changes[n-1].Kind == ledger.TrustStatus {
		c := &d.Changes[n-1]
		if c.Version != k.version+1 {
			return fmt.Errorf("status version %d after %d", c.Version, k.version)
		}
		k.status, k.version = c.Status, c.Version
	}
	k.rows++
	return nil
}

// validPayload reports whether p may be recorded under that ledger origin (S3).
func validPayload(p ledger.Payload, origin ledger.Day) bool {
	if p.State != ledger.Active {
		return p == ledger.Payload{State: ledger.Cancelled}
	}
	if !withinHorizon(p.Day, origin) {
		return false
	}
	switch p.Kind {
	case ledger.Receipt, ledger.Issue:
		return p.Quantity >= 1
	case ledger.OpeningCount, ledger.ClosingCount:
		return p.Quantity >= 0
	}
	return false
}

// validChanges reports whether a decision can have these outputs, by their kinds and days.
func validChanges(changes []ledger.Change, origin ledger.Day) bool {
	for i := range changes {
		c := &changes[i]
		switch c.Kind {
		case ledger.Balance, ledger.Alert:
			if c.Version < 1 || !withinHorizon(c.Day, origin) || i > 0 && !before(&changes[i-1], c) {
				return false
			}
		case ledger.TrustStatus:
			if i != len(changes)-1 || c.Status == nil || !c.Present {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// before reports whether a stands before b in the order of S8; neither is a status.
func before(a, b *ledger.Change) bool { return a.Day < b.Day || a.Day == b.Day && a.Kind < b.Kind }

func withinHorizon(d, origin ledger.Day) bool { return d >= origin && d-origin < ledger.HorizonDays }
