package manifest

import (
	"math"

	"amends/internal/ledger"
)

// Parse reads a manifest file (S2). It fails with *Error on anything that S2 does not allow: unknown, missing or
// repeated members, other types, values out of range, bytes that are not UTF-8, trailing data.
func Parse(data []byte) (*Manifest, error) {
	m := &Manifest{}
	var c Config
	r := newReader(data)
	e := r.file("", []member{
		{name: "source_topic", read: r.text(&m.SourceTopic)},
		{name: "config", read: r.config(&c, r.text(&c.SourceIncarnation))},
		{name: "output", optional: true, read: r.output(&m.Output)},
	})
	if e == nil {
		m.Config, e = build(c)
	}
	if e == nil {
		e = m.check()
	}
	if e != nil {
		return nil, r.placed(e)
	}
	return m, nil
}

// ParseConfig reads a configuration file: the config object of S2 without source_incarnation, which is given
// (design: source create -config). It fails with *Error, as Parse does.
func ParseConfig(data []byte, sourceIncarnation string) (*Config, error) {
	c := Config{SourceIncarnation: sourceIncarnation}
	r := newReader(data)
	e := r.file("config", r.configMembers(&c, nil))
	if e != nil {
		return nil, r.placed(e)
	}
	built, e := build(c)
	if e != nil {
		return nil, r.placed(e)
	}
	return built, nil
}

// config returns the reader of the config object, incarnation that of its source_incarnation.
func (r *reader) config(c *Config, incarnation readFunc) readFunc {
	return func(path string) *Error { return r.object(path, r.configMembers(c, incarnation)) }
}

// configMembers lists the members of config; without a reader for source_incarnation it has no such member.
func (r *reader) configMembers(c *Config, incarnation readFunc) []member {
	var version int64
	members := []member{
		{name: "schema_version", read: r.whole(&version, 1, 1)},
		{name: "namespace", read: r.text(&c.Namespace)},
		{name: "ledger_origin", read: r.day(&c.LedgerOrigin)},
		{name: "partitions", read: r.whole32(&c.Partitions, 1, ledger.MaxPartitions)},
		{name: "quantity_scale", read: r.whole32(&c.QuantityScale, 0, ledger.MaxScale)},
		{name: "stock_keys", read: r.stockKeys(&c.StockKeys)},
		{name: "open_keys", optional: true, read: func(path string) *Error {
			c.OpenKeys = &Terms{}
			return r.object(path, r.terms(c.OpenKeys))
		}},
	}
	if incarnation != nil {
		members = append(members, member{name: "source_incarnation", read: incarnation})
	}
	return members
}

func (r *reader) stockKeys(keys *[]StockKey) readFunc {
	return func(path string) *Error {
		return r.array(path, func(path string) *Error {
			var k StockKey
			e := r.object(path, append([]member{
				{name: "item", read: r.text(&k.Key.Item)},
				{name: "location", read: r.text(&k.Key.Location)},
				{name: "partition", read: r.whole32((*int32)(&k.Partition), 0, ledger.MaxPartitions-1)},
			}, r.terms(&k.Terms)...))
			*keys = append(*keys, k)
			return e
		})
	}
}

func (r *reader) terms(t *Terms) []member {
	return []member{
		{name: "opening_balance", read: r.whole(&t.OpeningBalance, math.MinInt64, math.MaxInt64)},
		{name: "threshold", read: r.wholeOrNull(&t.Threshold)},
	}
}

func (r *reader) output(o **Output) readFunc {
	return func(path string) *Error {
		*o = &Output{}
		return r.object(path, []member{
			{name: "topic", read: r.text(&(*o).Topic)},
			{name: "incarnation", read: r.text(&(*o).Incarnation)},
			{name: "partitions", read: r.whole32(&(*o).Partitions, 1, ledger.MaxPartitions)},
		})
	}
}
