package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"amends/internal/ledger"
)

const (
	namespaceRule   = "[a-z0-9][a-z0-9._-]{0,63}"
	incarnationRule = "kafka: and 32 lower case hexadecimal digits, the broker's topic id"
	topicRule       = "1 to 249 of [a-zA-Z0-9._-], not . or .."
	identifierRule  = "1 to 512 bytes of UTF-8"
)

// New validates c against S2 and returns a copy that is ready for use, its keys sorted by item bytes, then
// location bytes. It fails with *Error.
func New(c Config) (*Config, error) {
	built, e := build(c)
	if e != nil {
		return nil, e
	}
	return built, nil
}

func build(c Config) (*Config, *Error) {
	if e := c.check(); e != nil {
		return nil, e
	}
	c.StockKeys = slices.Clone(c.StockKeys)
	slices.SortFunc(c.StockKeys, func(a, b StockKey) int { return a.Key.Compare(b.Key) })
	c.index = make(map[ledger.StockKey]int, len(c.StockKeys))
	for i, k := range c.StockKeys {
		c.index[k.Key] = i
	}
	return &c, nil
}

// Default returns the configuration of the worked example: (widget, berlin) on partition 0 of 2, opening balance
// 0, threshold 60, ledger origin 2026-01-01, scale 0, no open keys. It fails with *Error on a namespace or
// incarnation that S2 does not allow.
func Default(namespace, sourceIncarnation string) (*Config, error) {
	threshold := int64(60)
	origin, _ := ledger.DateOf(2026, 1, 1)
	return New(Config{
		Namespace:         namespace,
		SourceIncarnation: sourceIncarnation,
		LedgerOrigin:      origin,
		Partitions:        2,
		StockKeys: []StockKey{{
			Key:   ledger.StockKey{Item: "widget", Location: "berlin"},
			Terms: Terms{Threshold: &threshold},
		}},
	})
}

// check returns the first member of c that S2 does not allow, nil if there is none.
func (c *Config) check() *Error {
	switch {
	case !ValidNamespace(c.Namespace):
		return refuse("config.namespace", quoted(c.Namespace)+" is not a namespace", namespaceRule)
	case !ValidIncarnation(c.SourceIncarnation):
		return refuse("config.source_incarnation", quoted(c.SourceIncarnation)+" is not a topic incarnation", incarnationRule)
	case c.LedgerOrigin < ledger.MinDay || c.LedgerOrigin > ledger.MaxDay:
		return refuse("config.ledger_origin", "not a day", "0001-01-01 to 9999-12-31")
	case c.Partitions < 1 || c.Partitions > ledger.MaxPartitions:
		return outOfRange("config.partitions", int64(c.Partitions), 1, ledger.MaxPartitions)
	case c.QuantityScale < 0 || c.QuantityScale > ledger.MaxScale:
		return outOfRange("config.quantity_scale", int64(c.QuantityScale), 0, ledger.MaxScale)
	}
	first := make(map[ledger.StockKey]int, len(c.StockKeys))
	for i, k := range c.StockKeys {
		member := "config.stock_keys[" + strconv.Itoa(i) + "]"
		switch {
		case !validIdentifier(k.Key.Item):
			return refuse(member+".item", badIdentifier(k.Key.Item), identifierRule)
		case !validIdentifier(k.Key.Location):
			return refuse(member+".location", badIdentifier(k.Key.Location), identifierRule)
		case k.Partition < 0 || int32(k.Partition) >= c.Partitions:
			return outOfRange(member+".partition", int64(k.Partition), 0, int64(c.Partitions)-1)
		}
		if j, again := first[k.Key]; again {
			return refuse(member, fmt.Sprintf("(%q, %q) is listed at [%d] already", k.Key.Item, k.Key.Location, j), "each key once")
		}
		first[k.Key] = i
	}
	return nil
}

// Check reports whether m is a valid manifest (S2, S9) for a Config made by New: topic names, and an output of
// as many partitions as the source that is not the source. It fails with *Error.
func (m *Manifest) Check() error {
	if e := m.check(); e != nil {
		return e
	}
	return nil
}

func (m *Manifest) check() *Error {
	if !ValidTopic(m.SourceTopic) {
		return refuse("source_topic", quoted(m.SourceTopic)+" is not a topic name", topicRule)
	}
	o := m.Output
	switch {
	case o == nil:
		return nil
	case !ValidTopic(o.Topic):
		return refuse("output.topic", quoted(o.Topic)+" is not a topic name", topicRule)
	case !ValidIncarnation(o.Incarnation):
		return refuse("output.incarnation", quoted(o.Incarnation)+" is not a topic incarnation", incarnationRule)
	case o.Partitions != m.Config.Partitions:
		return refuse("output.partitions", strconv.Itoa(int(o.Partitions))+" is not the number of the source", strconv.Itoa(int(m.Config.Partitions)))
	case o.Topic == m.SourceTopic:
		return refuse("output.topic", "it is the source topic", "a topic of its own")
	case o.Incarnation == m.Config.SourceIncarnation:
		return refuse("output.incarnation", "it is the source's incarnation", "a topic of its own")
	}
	return nil
}

// ValidNamespace reports whether s matches [a-z0-9][a-z0-9._-]{0,63} (S2).
func ValidNamespace(s string) bool {
	if len(s) < 1 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}

// ValidIncarnation reports whether s is kafka: and 32 lower case hexadecimal digits (S2).
func ValidIncarnation(s string) bool {
	if len(s) != len("kafka:")+32 || s[:6] != "kafka:" {
		return false
	}
	for _, c := range []byte(s[6:]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// ValidTopic reports whether s may name a topic: 1 to 249 of [a-zA-Z0-9._-], not . or .. (the broker's rule).
func ValidTopic(s string) bool {
	if len(s) < 1 || len(s) > 249 || s == "." || s == ".." {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

func validIdentifier(s string) bool { return ledger.ValidIdentifier(s) && utf8.ValidString(s) }

func badIdentifier(s string) string {
	if !utf8.ValidString(s) {
		return "not valid UTF-8"
	}
	return strconv.Itoa(len(s)) + " bytes"
}

func refuse(member, problem, allowed string) *Error {
	return &Error{Member: member, Problem: problem, Allowed: allowed}
}

func outOfRange(member string, n, low, high int64) *Error {
	return refuse(member, fmt.Sprintf("%d is out of range", n), fmt.Sprintf("%d..%d", low, high))
}

// mostShown is how many bytes of a faulty value an error repeats.
const mostShown = 80

// quoted returns s quoted and cut to a length that fits on a line.
func quoted(s string) string {
	if len(s) > mostShown {
		return strconv.Quote(s[:mostShown]) + "…"
	}
	return strconv.Quote(s)
}

// shortened returns s, which is ASCII or for show only, cut to a length that fits on a line.
func shortened(s string) string {
	if len(s) > mostShown {
		return strings.ToValidUTF8(s[:mostShown], "") + "…"
	}
	return s
}
