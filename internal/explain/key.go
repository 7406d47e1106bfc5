package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/store"
	"amends/internal/store/postgres/reader"
)

// NoKey is the refusal of a key that has no valid record: what is known of it, and keys that have one and are spelled
// almost the same. Configured is false where the namespace does not admit the key at all.
type NoKey struct {
	Key        ledger.StockKey
	Near       []ledger.StockKey
	Configured bool
}

// Error returns one line; identifiers are quoted.
func (e *NoKey) Error() string {
	text := fmt.Sprintf("key %q %q has no valid record", e.Key.Item, e.Key.Location)
	if !e.Configured {
		text = fmt.Sprintf("key %q %q is not configured, so every record of it is rejected", e.Key.Item, e.Key.Location)
	}
	if len(e.Near) == 0 {
		return text
	}
	near := make([]string, len(e.Near))
	for i, k := range e.Near {
		near[i] = fmt.Sprintf("%q %q", k.Item, k.Location)
	}
	return text + "; recorded are: " + strings.Join(near, ", ")
}

// mostNear is how many near keys are named.
const mostNear = 5

// Find returns a key as stored. It fails with *NoKey where the key has no valid record.
func Find(ctx context.Context, from *reader.Snapshot, cfg *manifest.Config, key ledger.StockKey) (reader.StoredKey, error) {
	found, err := from.FindKeys(ctx, []ledger.StockKey{key})
	if err != nil {
		return reader.StoredKey{}, err
	}
	if len(found) == 1 {
		return found[0], nil
	}
	refusal := &NoKey{Key: key}
	_, refusal.Configured = cfg.Terms(key)
	if refusal.Near, err = near(ctx, from, key); err != nil {
		return reader.StoredKey{}, err
	}
	return reader.StoredKey{}, refusal
}

// near looks for keys under other spellings, by the index alone: the usual cases, without spaces around, the two
// swapped, and the item at other locations.
func near(ctx context.Context, from *reader.Snapshot, key ledger.StockKey) ([]ledger.StockKey, error) {
	var tries []ledger.StockKey
	for _, item := range spellings(key.Item) {
		for _, location := range spellings(key.Location) {
			tries = append(tries, ledger.StockKey{Item: item, Location: location})
		}
	}
	tries = append(tries, ledger.StockKey{Item: key.Location, Location: key.Item})
	stored, err := from.FindKeys(ctx, tries)
	if err != nil {
		return nil, err
	}
	var found []ledger.StockKey
	for _, k := range stored {
		found = append(found, k.Key)
	}
	for _, item := range spellings(key.Item) {
		locations, err := from.Locations(ctx, item, mostNear)
		if err != nil {
			return nil, err
		}
		for _, l := range locations {
			if k := (ledger.StockKey{Item: item, Location: l}); !slices.Contains(found, k) {
				found = append(found, k)
			}
		}
	}
	return found[:min(len(found), mostNear)], nil
}

// spellings are those of an identifier that people mix up, itself first, each once.
func spellings(s string) []string {
	trimmed := strings.TrimSpace(s)
	all := []string{s, trimmed, strings.ToLower(trimmed), strings.ToUpper(trimmed)}
	_, first := utf8.DecodeRuneInString(trimmed)
	all = append(all, strings.ToUpper(trimmed[:first])+strings.ToLower(trimmed[first:]))
	var out []string
	for _, one := range all {
		if one != "" && !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

// Known is how far a partition was decided at a point of knowledge: what lies below Frontier counts.
type Known struct {
	Partition ledger.Partition
	Frontier  ledger.Frontier
	Early     bool // the point lies beyond what is decided, or may once a commit under way is done: its answer may still change
}

// known resolves a point in a partition; nil is everything decided.
func known(ctx context.Context, from *reader.Snapshot, p ledger.Partition, at *Point) (Known, error) {
	cuts, err := from.Frontiers(ctx)
	if err != nil {
		return Known{}, err
	}
	i := slices.IndexFunc(cuts, func(c store.Cut) bool { return c.Partition == p })
	if i < 0 {
		return Known{}, fmt.Errorf("partition %d has no row: %w", p, store.ErrIntegrity)
	}
	k := Known{Partition: p, Frontier: cuts[i].Frontier}
	switch {
	case at == nil:
	case !at.Time.IsZero():
		moment, err := from.Moment(ctx)
		if err != nil {
			return Known{}, err
		}
		if k.Frontier, err = from.DecidedBy(ctx, p, k.Frontier, at.Time); err != nil {
			return Known{}, err
		}
		underway, err := from.Underway(ctx, p, k.Frontier)
		k.Early = underway || at.Time.After(moment.Now)
		return k, err
	case at.Partition != nil && *at.Partition != p:
		return Known{}, elsewhere(p, *at.Partition)
	case at.Offset > k.Frontier:
		k.Early = true
	default:
		k.Frontier = at.Offset
	}
	return k, nil
}
