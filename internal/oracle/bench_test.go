package oracle

import (
	"fmt"
	"runtime"
	"testing"

	"amends/internal/ledger"
)

// BenchmarkAdd measures a whole recomputation in records/s of one core: 200 keys, 365 days, 2,000 transactions a key,
// a tenth of the records being corrections. The derivation of every key's outputs is part of it.
func BenchmarkAdd(b *testing.B) {
	const keys, days, perKey = 200, 365, 2_000
	cfg := Config{Origin: 1, Partitions: 2}
	brokerKeys := make([][]byte, keys)
	for k := range keys {
		limit := int64(50)
		name := ledger.StockKey{Item: fmt.Sprintf("item-%04d", k), Location: "warehouse-1"}
		cfg.Keys = append(cfg.Keys, Key{Key: name, Partition: ledger.Partition(k % 2), Terms: Terms{Opening: 100, Threshold: &limit}})
		brokerKeys[k] = canonicalKey(name)
	}
	values := make([][]byte, 0, keys*perKey)
	for i := range keys * perKey {
		k, n, revision := i%keys, i/keys, 1
		if i%10 == 9 && n > 3 {
			n, revision = n-3, 2
		}
		values = append(values, fmt.Appendf(nil, `{"schema":1,"txn_id":"T-%06d","revision":%d,"state":"active","item":"item-%04d","location":"warehouse-1","day":"%s","kind":"%s","quantity":%d}`,
			n, revision, k, ledger.Day(1+n*days/perKey), []string{"receipt", "issue"}[n%2], 10+i%7))
	}
	b.ReportAllocs()
	records, outputs := 0, 0
	for b.Loop() {
		o := New(cfg)
		for i, v := range values {
			if got := o.Add(ledger.Partition(i%keys%2), ledger.Offset(i), brokerKeys[i%keys], v); got.Rejection != 0 {
				b.Fatal(got.Rejection)
			}
		}
		for e := range o.All() {
			outputs += len(e.Balances) + len(e.Alerts) + 1
		}
		records += len(values)
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(outputs)/float64(records), "outputs/record")
}

// BenchmarkDecode measures the validation of one value.
func BenchmarkDecode(b *testing.B) {
	v := []byte(`{"schema":1,"txn_id":"T-000123","revision":1,"state":"active","item":"item-0001","location":"warehouse-1","day":"2026-01-01","kind":"receipt","quantity":100}`)
	b.ReportAllocs()
	for b.Loop() {
		var d decoded
		if code := decodeValue(v, &d); code != 0 {
			b.Fatal(code)
		}
	}
}

// BenchmarkState measures saving and restoring the state of 1,000,000 transactions: bytes a transaction, and the heap
// that the restored oracle keeps.
func BenchmarkState(b *testing.B) {
	const keys, perKey = 1_000, 1_000
	limit := int64(50)
	cfg := Config{Origin: 1, Partitions: 1, Open: &Terms{Opening: 100, Threshold: &limit}}
	o := New(cfg)
	for i := range keys * perKey {
		name := ledger.StockKey{Item: fmt.Sprintf("item-%04d", i%keys), Location: "warehouse-1"}
		v := fmt.Appendf(nil, `{"schema":1,"txn_id":"T-%07d","revision":1,"state":"active","item":"%s","location":"warehouse-1","day":"%s","kind":"%s","quantity":%d}`,
			i, name.Item, ledger.Day(1+i/keys*365/perKey), []string{"receipt", "issue"}[i%2], 10+i%7)
		if got := o.Add(0, ledger.Offset(i), canonicalKey(name), v); got.Rejection != 0 {
			b.Fatal(got.Rejection)
		}
	}
	saved := o.AppendState(nil)
	o = nil
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var restored *Oracle
	for b.Loop() {
		var err error
		if restored, err = Restore(cfg, saved); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(len(saved))/(keys*perKey), "saved-B/transaction")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(keys*perKey), "heap-B/transaction")
	if restored.Counts().Records != keys*perKey {
		b.Fatal(restored.Counts())
	}
}
