package verify

import (
	"context"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/oracle"
	"amends/internal/verify/stored"
)

// prefix is the source as read from the topic so far: one oracle a partition, each at its own position.
type prefix struct {
	reader Reader
	config oracle.Config
	parts  []part
}

// part is the recomputation of one partition: what the source below at says.
type part struct {
	oracle *oracle.Oracle
	since  *changes // of an audit; nil where everything is compared
	at     ledger.Frontier
}

func newPrefix(cfg *manifest.Config, reader Reader) *prefix {
	x := &prefix{reader: reader, config: stored.OracleConfig(cfg), parts: make([]part, cfg.Partitions)}
	for p := range x.parts {
		x.reset(ledger.Partition(p))
	}
	return x
}

// reset forgets partition p: an oracle takes nothing back.
func (x *prefix) reset(p ledger.Partition) { x.parts[p] = part{oracle: oracle.New(x.config)} }

// extend reads partition p up to end, which read-committed readers can see; nothing if it is past end.
func (x *prefix) extend(ctx context.Context, p ledger.Partition, end ledger.Frontier) error {
	part := &x.parts[p]
	if part.at > end {
		return nil
	}
	at, err := x.reader.ReadTo(ctx, p, part.at, end, func(r ledger.SourceRecord) error {
		part.since.note(part.oracle, &r)
		part.oracle.Add(p, r.Offset, r.Key, r.Value)
		part.at = ledger.Frontier(r.Offset) + 1
		return nil
	})
	if err != nil {
		return fmt.Errorf("read source partition %d at offset %d: %w", p, part.at, err)
	}
	// Past end nothing was added: the frontier of what the oracle holds is end itself.
	part.at = min(at, end)
	return nil
}
