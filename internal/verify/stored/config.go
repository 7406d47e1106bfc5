package stored

import (
	"amends/internal/manifest"
	"amends/internal/oracle"
)

// OracleConfig gives the oracle what it needs of a configuration.
func OracleConfig(cfg *manifest.Config) oracle.Config {
	c := oracle.Config{Origin: cfg.LedgerOrigin, Partitions: cfg.Partitions, Keys: make([]oracle.Key, len(cfg.StockKeys))}
	for i, k := range cfg.StockKeys {
		c.Keys[i] = oracle.Key{Key: k.Key, Partition: k.Partition, Terms: oracle.Terms{Threshold: k.Threshold, Opening: k.OpeningBalance}}
	}
	if o := cfg.OpenKeys; o != nil {
		c.Open = &oracle.Terms{Threshold: o.Threshold, Opening: o.OpeningBalance}
	}
	return c
}
