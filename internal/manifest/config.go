package manifest

import "amends/internal/ledger"

// Config is the immutable configuration of a namespace (S2). Build one with Parse, ParseConfig or New, which validate it
// and prepare its lookups; never change it afterwards.
type Config struct {
	index             map[ledger.StockKey]int
	OpenKeys          *Terms
	Namespace         string
	SourceIncarnation string
	StockKeys         []StockKey
	LedgerOrigin      ledger.Day
	Partitions        int32
	QuantityScale     int32
}

// Terms are what a stock key starts with and is watched for. A nil Threshold raises no alerts.
type Terms struct {
	Threshold      *int64
	OpeningBalance int64
}

// StockKey is a configured key with its explicit partition (S2).
type StockKey struct {
	Terms
	Key       ledger.StockKey
	Partition ledger.Partition
}

// Output is the topic a namespace is bound to (S2, S9).
type Output struct {
	Topic       string
	Incarnation string
	Partitions  int32
}

// Manifest is a namespace's file: its source topic, configuration and, once bound, its output (S2).
type Manifest struct {
	Config      *Config
	Output      *Output
	SourceTopic string
}
