package engine

import (
	"slices"
	"strings"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/wire"
)

// States are the cached key states of one partition, evicted by last use under a byte limit. Not safe for concurrent use.
type States struct {
	cfg       *manifest.Config
	keys      map[ledger.StockKey]*state
	newest    *state
	oldest    *state
	changed   []*state // decided since Snapshots looked last, some of them evicted since
	bytes     int64
	limit     int64
	round     uint64 // the latest call of Missing
	slabSize  int    // changes that the latest batch held
	partition ledger.Partition
}

// NewStates returns an empty cache for a partition of the namespace with that configuration. limit is in bytes; the
// keys of one batch stay cached even beyond it.
func NewStates(cfg *manifest.Config, p ledger.Partition, limit int64) *States {
	return &States{cfg: cfg, partition: p, limit: limit, keys: map[ledger.StockKey]*state{}}
}

// Missing begins a batch: it returns the keys of its valid records that are not cached, each once, in the order of
// their first record, for Restore. Before that it evicts the least recently used states beyond the limit, none of
// this batch. What was decided before must be committed by now, since an evicted state is read back from the store.
func (s *States) Missing(recs []wire.Decoded) []ledger.StockKey {
	s.round++
	var missing []ledger.StockKey
	var seen map[ledger.StockKey]bool
	for i := range recs {
		if recs[i].Rejection != 0 {
			continue
		}
		key := recs[i].Assertion.Key
		if k := s.keys[key]; k != nil {
			if k.round != s.round {
				k.round = s.round
				s.unlink(k)
				s.link(k)
			}
			continue
		}
		if !seen[key] {
			if seen == nil {
				seen = map[ledger.StockKey]bool{}
			}
			seen[key] = true
			missing = append(missing, key)
		}
	}
	for s.bytes > s.limit && s.oldest != nil && s.oldest.round != s.round {
		s.remove(s.oldest)
	}
	return missing
}

// Drop forgets every state, after a commit that failed or whose outcome is unknown, or when ownership ends.
func (s *States) Drop() {
	*s = States{cfg: s.cfg, partition: s.partition, limit: s.limit, round: s.round, keys: map[ledger.StockKey]*state{}}
}

// Bytes returns the memory of the cached states, within a few percent.
func (s *States) Bytes() int64 { return s.bytes }

// Len returns how many keys are cached.
func (s *States) Len() int { return len(s.keys) }

// Partition returns the partition whose keys these are.
func (s *States) Partition() ledger.Partition { return s.partition }

// insert caches a state that is not cached, as the most recently used. The key's strings are copied: they may be part
// of something larger.
func (s *States) insert(k *state) {
	k.key = ledger.StockKey{Item: strings.Clone(k.key.Item), Location: strings.Clone(k.key.Location)}
	k.round = s.round
	k.bytes = k.size()
	s.bytes += k.bytes
	s.keys[k.key] = k
	s.link(k)
}

// used notes that a state has decided a record.
func (s *States) used(k *state) {
	n := k.size()
	s.bytes += n - k.bytes
	k.bytes = n
	if k.changed {
		return
	}
	k.changed = true
	if len(s.changed) > 2*len(s.keys) { // at least half were evicted since
		s.changed = slices.DeleteFunc(s.changed, func(k *state) bool { return k.txns == nil })
	}
	s.changed = append(s.changed, k)
}

// remove forgets one state.
func (s *States) remove(k *state) {
	delete(s.keys, k.key)
	s.bytes -= k.bytes
	s.unlink(k)
	k.txns, k.days = nil, nil // changed may hold it a little longer
}

func (s *States) link(k *state) {
	k.older = s.newest
	if s.newest != nil {
		s.newest.newer = k
	}
	s.newest = k
	if s.oldest == nil {
		s.oldest = k
	}
}

func (s *States) unlink(k *state) {
	if k.newer != nil {
		k.newer.older = k.older
	} else {
		s.newest = k.older
	}
	if k.older != nil {
		k.older.newer = k.newer
	} else {
		s.oldest = k.newer
	}
	k.newer, k.older = nil, nil
}
