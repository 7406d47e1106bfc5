package workload

import (
	"fmt"
	"strconv"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/wire"
)

// Setting is what a workload asks of the configuration of its namespace (S2). A nil Open admits listed keys only.
type Setting struct {
	Open       *manifest.Terms
	Keys       []manifest.StockKey
	Origin     ledger.Day
	Partitions int32
}

// Config builds the configuration of a namespace. It fails with *manifest.Error on a namespace or incarnation that S2
// does not allow.
func (s Setting) Config(namespace, sourceIncarnation string) (*manifest.Config, error) {
	c, err := manifest.New(manifest.Config{OpenKeys: s.Open, Namespace: namespace, SourceIncarnation: sourceIncarnation,
		StockKeys: s.Keys, LedgerOrigin: s.Origin, Partitions: s.Partitions})
	if err != nil {
		return nil, fmt.Errorf("build configuration: %w", err)
	}
	return c, nil
}

// AppendFile appends the setting as a configuration file for source create: the config object of S2 without
// source_incarnation, one stock key a line, a line end last.
func (s Setting) AppendFile(dst []byte, namespace string) []byte {
	dst = append(dst, "{\n  \"schema_version\": 1,\n  \"namespace\": "...)
	dst = wire.AppendString(dst, namespace)
	dst = append(dst, ",\n  \"ledger_origin\": \""...)
	dst = s.Origin.AppendTo(dst)
	dst = append(dst, "\",\n  \"partitions\": "...)
	dst = strconv.AppendInt(dst, int64(s.Partitions), 10)
	dst = append(dst, ",\n  \"quantity_scale\": 0,\n  \"stock_keys\": ["...)
	for i, k := range s.Keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, "\n    {\"item\": "...)
		dst = wire.AppendString(dst, k.Key.Item)
		dst = append(dst, ", \"location\": "...)
		dst = wire.AppendString(dst, k.Key.Location)
		dst = append(dst, ", \"partition\": "...)
		dst = strconv.AppendInt(dst, int64(k.Partition), 10)
		dst = append(appendTerms(append(dst, ", "...), k.Terms), '}')
	}
	dst = append(dst, "\n  ]"...)
	if s.Open != nil {
		dst = append(appendTerms(append(dst, ",\n  \"open_keys\": {"...), *s.Open), '}')
	}
	return append(dst, "\n}\n"...)
}

func appendTerms(dst []byte, t manifest.Terms) []byte {
	dst = append(dst, "\"opening_balance\": "...)
	dst = strconv.AppendInt(dst, t.OpeningBalance, 10)
	dst = append(dst, ", \"threshold\": "...)
	if t.Threshold == nil {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, *t.Threshold, 10)
}

// defaultPartition is where Kafka's default partitioner puts a key (S2).
func defaultPartition(k ledger.StockKey, partitions int32) ledger.Partition {
	p, _ := (&manifest.Config{Partitions: partitions, OpenKeys: &manifest.Terms{}}).Route(k)
	return p
}

// Log turns assertions into source records as a loader would: canonical key, the key's partition, the next offset of it.
type Log struct {
	cfg  *manifest.Config
	next []ledger.Offset
}

// NewLog returns an empty log for the source topic of a configuration.
func NewLog(cfg *manifest.Config) *Log {
	return &Log{cfg: cfg, next: make([]ledger.Offset, cfg.Partitions)}
}

// Record returns the next record of a's partition, which states a. The configuration must admit a's key.
func (l *Log) Record(a ledger.Assertion) ledger.SourceRecord {
	p, _ := l.cfg.Route(a.Key)
	rec := ledger.SourceRecord{Key: wire.AppendKey(nil, a.Key), Value: wire.AppendAssertion(make([]byte, 0, 256), a), Partition: p, Offset: l.next[p]}
	l.next[p]++
	return rec
}

// AppendLine appends a as a line of a jsonl file for source load: its value (S3) and a line end.
func AppendLine(dst []byte, a ledger.Assertion) []byte {
	return append(wire.AppendAssertion(dst, a), '\n')
}
