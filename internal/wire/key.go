package wire

import (
	"bytes"

	"amends/internal/ledger"
	"amends/internal/manifest"
)

// AppendString appends s, which must be valid UTF-8, as a JSON string with the minimal escapes of RFC 8785 (S3, S8).
func AppendString(dst []byte, s string) []byte { return manifest.AppendString(dst, s) }

// AppendKey appends the canonical key encoding of k: the key of every broker record (S3, S8).
func AppendKey(dst []byte, k ledger.StockKey) []byte { return manifest.AppendKey(dst, k) }

// ParseKey reads a source record's broker key: exactly the two members with any white space, order and escapes (S3).
// It reports false for anything else.
func ParseKey(key []byte) (ledger.StockKey, bool) {
	var s scanner
	s.reset(key)
	s.open()
	var item, location []byte
	for first := true; ; first = false {
		name, more := s.member(first)
		if !more {
			break
		}
		v := s.value(1)
		if s.problem != nil || v.kind != stringToken {
			return ledger.StockKey{}, false
		}
		field := &item
		switch string(s.unescaped(name)) {
		case "item":
		case "location":
			field = &location
		default:
			return ledger.StockKey{}, false
		}
		if *field != nil {
			return ledger.StockKey{}, false
		}
		*field = s.unescaped(v)
	}
	s.end()
	k := ledger.StockKey{Item: string(item), Location: string(location)}
	if s.problem != nil || !ledger.ValidIdentifier(k.Item) || !ledger.ValidIdentifier(k.Location) {
		return ledger.StockKey{}, false
	}
	return k, true
}

// ParseCanonicalKey reads the key of an output record, which must be the canonical key encoding itself (S8).
func ParseCanonicalKey(key []byte) (ledger.StockKey, bool) {
	k, ok := ParseKey(key)
	if !ok || !bytes.Equal(key, AppendKey(make([]byte, 0, 128), k)) {
		return ledger.StockKey{}, false
	}
	return k, true
}
