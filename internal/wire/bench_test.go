package wire

import (
	"testing"

	"amends/internal/ledger"
)

func BenchmarkDecode(b *testing.B) {
	cfg := workedConfig(b)
	rec := ledger.SourceRecord{
		Key:   []byte(`{"item":"widget","location":"berlin"}`),
		Value: []byte(`{"schema":1,"txn_id":"T-1","revision":1,"state":"active","item":"widget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":100}`),
	}
	poison := rec
	poison.Value = []byte(`{"schema":1,"txn_id":"T-1","revision":1,"state":"active","item":"widget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":-1}`)
	for name, r := range map[string]ledger.SourceRecord{"valid": rec, "rejected": poison} {
		b.Run(name, func(b *testing.B) {
			d := NewDecoder(cfg)
			b.ReportAllocs()
			for b.Loop() {
				if out := d.Decode(r); (out.Rejection == 0) != (name == "valid") {
					b.Fatal(out.Rejection)
				}
			}
		})
	}
}

func BenchmarkParseValue(b *testing.B) {
	value := []byte(`{"schema":1,"txn_id":"T-1","revision":1,"state":"active","item":"widget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":100}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, code, p := ParseValue(value); code != 0 {
			b.Fatal(p)
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	key, value := make([]byte, 40), make([]byte, 150)
	for b.Loop() {
		Digest(key, value)
	}
}

func BenchmarkEncode(b *testing.B) {
	enc := NewEncoder(workedConfig(b), 0)
	d := workedDecisions()[3]
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		dst = enc.Append(dst[:0], &d, i%len(d.Changes))
	}
}

func BenchmarkDecodeEnvelope(b *testing.B) {
	text := []byte(lines(readFile(b, "testdata", "worked-example.jsonl"))[4])
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeEnvelope(text); err != nil {
			b.Fatal(err)
		}
	}
}
