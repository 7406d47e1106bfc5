package oracle

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/pace"
)

// records are a random history of three keys, one in five records not valid.
func stateRecords(r *rand.Rand, n int) (keys, values [][]byte) {
	txns := 1 + r.IntN(60)
	for i := range n {
		name := ledger.StockKey{Item: fmt.Sprintf("item-%d", r.IntN(3)), Location: "berlin"}
		a := ledger.Assertion{Key: name, TxnID: fmt.Sprintf("T-%d", r.IntN(txns)), Revision: ledger.Revision(1 + r.IntN(4)), Payload: ledger.Payload{State: ledger.Cancelled}}
		if r.IntN(3) == 0 {
			a.Revision += ledger.Revision(i) * 8
		}
		if r.IntN(5) > 0 {
			a.Payload = ledger.Payload{State: ledger.Active, Kind: ledger.Kind(1 + r.IntN(4)), Day: ledger.Day(1 + r.IntN(12)), Quantity: ledger.Quantity(1 + r.IntN(30))}
		}
		key, v := canonicalKey(name), value(a)
		switch r.IntN(10) {
		case 0:
			v = v[:r.IntN(len(v))]
		case 1:
			key = append([]byte{' '}, key...) // another spelling of the same key
		}
		keys, values = append(keys, key), append(values, v)
	}
	return keys, values
}

func stateConfig() Config {
	limit := int64(20)
	return Config{Origin: 1, Partitions: 1, Open: &Terms{Opening: 25, Threshold: &limit}}
}

// S10: an audit's state survives a restart: an oracle that was saved and restored says of every further record, and of
// every key, what one that never stopped says.
func TestS10RestoredOracleGoesOnAsIfItHadNotStopped(t *testing.T) {
	t.Parallel()
	for seed := range uint64(pace.Of(400)) {
		r := rand.New(rand.NewPCG(seed, 11))
		keys, values := stateRecords(r, 300)
		whole := New(stateConfig())
		part := New(stateConfig())
		for i := range keys {
			if r.IntN(40) == 0 {
				saved := part.AppendState(nil)
				restored, err := Restore(stateConfig(), saved)
				if err != nil {
					t.Fatalf("seed %d record %d: %v", seed, i, err)
				}
				if again := restored.AppendState(nil); !bytes.Equal(saved, again) {
					t.Fatalf("seed %d record %d: saved again it is another state", seed, i)
				}
				part = restored
			}
			a, b := whole.Add(0, ledger.Offset(2*i), keys[i], values[i]), part.Add(0, ledger.Offset(2*i), keys[i], values[i])
			if a != b {
				t.Fatalf("seed %d record %d: %+v, restored %+v", seed, i, a, b)
			}
		}
		if d := cmp.Diff(slices.Collect(whole.All()), slices.Collect(part.All())); d != "" {
			t.Fatalf("seed %d (-whole +restored):\n%s", seed, d)
		}
		name := ledger.StockKey{Item: "item-0", Location: "berlin"}
		if d := cmp.Diff(whole.Conflicts(name), part.Conflicts(name)); d != "" || whole.Counts() != part.Counts() {
			t.Fatalf("seed %d: %s\n%v\n%v", seed, d, whole.Counts(), part.Counts())
		}
	}
}

// What is not a saved state is refused, whatever it is.
func TestS10DamagedStateIsRefused(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 12))
	o := New(stateConfig())
	keys, values := stateRecords(r, 200)
	for i := range keys {
		o.Add(0, ledger.Offset(i), keys[i], values[i])
	}
	saved := o.AppendState(nil)
	for n := range saved {
		if _, err := Restore(stateConfig(), saved[:n]); !errors.Is(err, ErrState) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(saved), err)
		}
	}
	if _, err := Restore(stateConfig(), append(saved[:len(saved):len(saved)], 0)); !errors.Is(err, ErrState) {
		t.Errorf("a byte more: %v", err)
	}
	closed := stateConfig()
	closed.Open = nil
	if _, err := Restore(closed, saved); !errors.Is(err, ErrState) {
		t.Errorf("another configuration: %v", err)
	}
	for range pace.Of(20_000) { // no panic and no large allocation; the checksum beside a state finds such changes
		b := bytes.Clone(saved)
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] = byte(r.IntN(256))
		}
		if x, err := Restore(stateConfig(), b); err == nil {
			for range x.All() {
			}
		}
	}
}

// A broker key names one stock key in every spelling, seen before or not.
func TestNamedKey(t *testing.T) {
	t.Parallel()
	o := New(stateConfig())
	name := ledger.StockKey{Item: "a\"b", Location: "x"}
	named := func() {
		for _, raw := range []string{string(canonicalKey(name)), `{ "location":"x","item":"a\u0022b"}`} {
			if got, ok := o.Named([]byte(raw)); !ok || got != name {
				t.Errorf("%s names %v, %t", raw, got, ok)
			}
		}
	}
	named()
	v := []byte(`{"schema":1,"txn_id":"T","revision":1,"state":"cancelled","item":"a\"b","location":"x"}`)
	if got := o.Add(0, 0, canonicalKey(name), v); got.Rejection != 0 {
		t.Fatal(got)
	}
	named()
	if _, ok := o.Named([]byte("x")); ok {
		t.Error("what is no key is named")
	}
}

// Bytes that restore are a state: it can be used, and saved and restored again it is the same.
func FuzzRestore(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 12))
	o := New(stateConfig())
	keys, values := stateRecords(r, 40)
	for i := range keys {
		o.Add(0, ledger.Offset(i), keys[i], values[i])
		if i%8 == 7 {
			f.Add(o.AppendState(nil))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := Restore(stateConfig(), b)
		if err != nil {
			if !errors.Is(err, ErrState) {
				t.Fatal(err)
			}
			return
		}
		expected := slices.Collect(o.All())
		again, err := Restore(stateConfig(), o.AppendState(nil))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(expected, slices.Collect(again.All())); d != "" {
			t.Fatalf("(-first +again):\n%s", d)
		}
	})
}
