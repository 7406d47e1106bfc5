package verify

import (
	"context"
	"fmt"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/oracle"
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
	x := &prefix{reader: reader, config: oracleConfig(cfg), parts: make([]part, cfg.Partitions)}
	return x.anew()
}

// oracleConfig gives the oracle what it needs of a configuration.
func oracleConfig(cfg *manifest.Config) oracle.Config {
	c := oracle.Config{Origin: cfg.LedgerOrigin, Partitions: cfg.Partitions, Keys: make([]oracle.Key, len(cfg.StockKeys))}
	for i, k := range cfg.StockKeys {
		c.Keys[i] = oracle.Key{Key: k.Key, Partition: k.Partition, Terms: oracle.Terms{Threshold: k.Threshold, Opening: k.OpeningBalance}}
	}
	if o := cfg.OpenKeys; o != nil {
		c.Open = &oracle.Terms{Threshold: o.Threshold, Opening: o.OpeningBalance}
	}
	return c
}

// reset forgets partition p: an oracle takes nothing back.
func (x *prefix) reset(p ledger.Partition) { x.parts[p] = part{oracle: oracle.New(x.config)} }

// anew is a prefix of which nothing is read.
func (x *prefix) anew() *prefix {
	n := &prefix{reader: x.reader, config: x.config, parts: make([]part, len(x.parts))}
	for p := range n.parts {
		n.reset(ledger.Partition(p))
	}
	return n
}

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
