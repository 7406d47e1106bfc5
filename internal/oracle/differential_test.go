package oracle_test

import (
	"fmt"
	"strings"
	"testing"

	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/oracle"
	"amends/internal/pace"
	"amends/internal/wire"
	"amends/internal/workload"
)

// judges are the two independent implementations of S3 under one configuration.
type judges struct {
	setting workload.Setting
	wire    *wire.Decoder
	oracle  *oracle.Oracle
	offset  ledger.Offset
}

func newJudges(t testing.TB, h *workload.History) *judges {
	t.Helper()
	cfg, err := h.Config("demo")
	if err != nil {
		t.Fatal(err)
	}
	return &judges{setting: h.Setting, wire: wire.NewDecoder(cfg), oracle: oracle.New(configOf(cfg))}
}

// configOf is how a caller of the oracle builds its configuration.
func configOf(c *manifest.Config) oracle.Config {
	cfg := oracle.Config{Origin: c.LedgerOrigin, Partitions: c.Partitions}
	if c.OpenKeys != nil {
		cfg.Open = &oracle.Terms{Opening: c.OpenKeys.OpeningBalance, Threshold: c.OpenKeys.Threshold}
	}
	for _, k := range c.StockKeys {
		cfg.Keys = append(cfg.Keys, oracle.Key{Key: k.Key, Partition: k.Partition, Terms: oracle.Terms{Opening: k.OpeningBalance, Threshold: k.Threshold}})
	}
	return cfg
}

// agree reports what the two make of a record and fails where they differ: the code, or the assertion.
func (j *judges) agree(t *testing.T, p ledger.Partition, key, value []byte) ledger.Rejection {
	t.Helper()
	d := j.wire.Decode(ledger.SourceRecord{Partition: p, Offset: j.offset, Key: key, Value: value})
	v := j.oracle.Add(p, j.offset, key, value)
	j.offset++
	if d.Rejection != v.Rejection {
		t.Fatalf("wire says %q, the oracle %q\nkey   %q\nvalue %q", d.Rejection, v.Rejection, key, value)
	}
	if v.Rejection == 0 && d.Assertion != v.Assertion {
		t.Fatalf("wire reads %+v, the oracle %+v\nvalue %q", d.Assertion, v.Assertion, value)
	}
	return v.Rejection
}

// fragments are what mutation puts into a record: where decoders err.
var fragments = []string{`"`, `\`, `\u`, `\ud800`, `\udc00`, `\u0000`, `\/`, "{", "}", "[", "]", ",", ":", "null", "true", "-", "-0", "0", "00", "1", ".5", "e9", "E+1", " ", "\t", "\x00", "\x1f", "\x7f", "\xff", "\xed\xa0\x80",
	"\xef\xbb\xbf", "\u2028", `"schema":1`, `"schema":2`, `,"x":{"x":1,"x":2}`, `"state":"active"`, `"state":"cancelled"`, `"quantity":9223372036854775807`, "9223372036854775808", `"day":"2026-02-30"`, `"item"`, "\u212a", "ſ"}

func mutate(r *workload.Rand, b []byte) []byte {
	out := append([]byte{}, b...)
	for range r.Between(1, 3) {
		if len(out) == 0 {
			break
		}
		i := r.Below(len(out))
		switch r.Below(6) {
		case 0:
			out = append(out[:i], out[i+1:]...)
		case 1:
			out[i] = byte(r.Below(256))
		case 2:
			f := fragments[r.Below(len(fragments))]
			out = append(out[:i], append([]byte(f), out[i:]...)...)
		case 3: // a piece again, elsewhere
			k := min(len(out), i+r.Below(30))
			piece := append([]byte{}, out[i:k]...)
			at := r.Below(len(out))
			out = append(out[:at], append(piece, out[at:]...)...)
		case 4:
			out[i] ^= 1 << r.Below(8)
		case 5:
			f := fragments[r.Below(len(fragments))]
			out = append(out[:i], append([]byte(f), out[min(len(out), i+len(f)):]...)...)
		}
	}
	return out
}

// TestOracleAndWireAgree judges 200,000 mutated records by both decoders of S3.
func TestOracleAndWireAgree(t *testing.T) {
	t.Parallel()
	total := pace.Of(200_000)
	codes := map[string]int{}
	r := workload.NewRand(20)
	for n, seed := 0, uint64(0); n < total; seed++ {
		o := workload.DefaultHistory(seed)
		o.Poison, o.Hostile = 20, seed%2 == 0
		h := workload.NewHistory(o)
		j := newJudges(t, h)
		for _, rec := range h.Records {
			codes[j.agree(t, rec.Partition, rec.Key, rec.Value).String()]++
			if len(rec.Value) > 2_000 || len(rec.Key) > 4_000 {
				continue
			}
			for range 12 {
				key, value := rec.Key, mutate(r, rec.Value)
				if r.Percent(25) {
					key, value = mutate(r, rec.Key), rec.Value
				}
				codes[j.agree(t, rec.Partition, key, value).String()]++
				n++
			}
		}
	}
	for code := ledger.TooLarge; code <= ledger.Routing; code++ {
		if codes[code.String()] < pace.Of(200_000)/20_000 {
			t.Errorf("%s occurred %d times", code, codes[code.String()])
		}
	}
	t.Log(codes)
}

// The limits of S3, at the limit and one past it, for both decoders.
func TestLimitsOfS3(t *testing.T) {
	t.Parallel()
	j := newJudges(t, workload.NewHistory(workload.HistoryOptions{Seed: 1, Records: 1, Keys: 1, Days: 20, Partitions: 2}))
	k := j.setting.Keys[0]
	key := string(wire.AppendKey(nil, k.Key))
	value := func(change ...string) string {
		return strings.NewReplacer(change...).Replace(fmt.Sprintf(`{"schema":1,"txn_id":"T","revision":1,"state":"active","item":%s,"location":%s,"day":"2026-01-01","kind":"receipt","quantity":1}`,
			wire.AppendString(nil, k.Key.Item), wire.AppendString(nil, k.Key.Location)))
	}
	pad := func(s string, n int) string { return s + strings.Repeat(" ", n-len(s)) }
	nested := func(n int) string {
		return strings.Replace(value(`"schema":1`, `"schema":2`), "{", `{"x":`+strings.Repeat("[", n-1)+strings.Repeat("]", n-1)+",", 1)
	}
	for _, c := range []struct {
		name, key, value string
		want             ledger.Rejection
	}{
		{"plain", key, value(), 0},
		{"value of 65,536 bytes", key, pad(value(), 65_536), 0},
		{"value of 65,537 bytes", key, pad(value(), 65_537), ledger.TooLarge},
		{"key of 8,192 bytes", pad(key, 8_192), value(), 0},
		{"key of 8,193 bytes", pad(key, 8_193), value(), ledger.TooLarge},
		{"64 levels", key, nested(64), ledger.UnsupportedSchema},
		{"65 levels", key, nested(65), ledger.Malformed},
		{"txn_id of 512 bytes", key, value(`"T"`, `"`+strings.Repeat("é", 256)+`"`), 0},
		{"txn_id of 513 bytes", key, value(`"T"`, `"`+strings.Repeat("é", 256)+`x"`), ledger.InvalidValue},
		{"txn_id of 512 escaped bytes", key, value(`"T"`, `"`+strings.Repeat(`\u0000`, 512)+`"`), 0},
		{"quantity 2^63-1", key, value(`y":1`, `y":9223372036854775807`), 0},
		{"quantity 2^63", key, value(`y":1`, `y":9223372036854775808`), ledger.InvalidValue},
		{"quantity 0", key, value(`y":1`, `y":0`), ledger.InvalidValue},
		{"a count of 0", key, value(`y":1`, `y":0`, "receipt", "closing_count"), 0},
		{"revision 2^63-1", key, value(`revision":1`, `revision":9223372036854775807`), 0},
		{"revision 2^63", key, value(`revision":1`, `revision":9223372036854775808`), ledger.InvalidValue},
		{"revision 2^64+1", key, value(`revision":1`, `revision":18446744073709551617`), ledger.InvalidValue},
		{"C35", key, value(`y":1`, `y":327267367867168100000`), ledger.InvalidValue},
		{"the last day", key, value("2026-01-01", "2126-01-01"), 0},
		{"the day after it", key, value("2026-01-01", "2126-01-02"), ledger.OutOfHorizon},
		{"the day before the origin", key, value("2026-01-01", "2025-12-31"), ledger.OutOfHorizon},
		{"a leap day", key, value("2026-01-01", "2028-02-29"), 0},
		{"no leap day", key, value("2026-01-01", "2100-02-29"), ledger.InvalidValue},
		{"unknown state, absent members", key, `{"schema":1,"state":"gone","quantity":7}`, ledger.InvalidValue},
		{"unknown state, wrong type", key, `{"schema":1,"state":"gone","quantity":"7"}`, ledger.Malformed},
		{"unknown state, unknown name", key, `{"schema":1,"state":"gone","Item":"7"}`, ledger.Malformed},
		{"no state", key, `{"schema":1}`, ledger.Malformed},
		{"escaped names", strings.Replace(key, "item", `\u0069tem`, 1), value(`"day"`, `"d\u0061y"`), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := j.agree(t, k.Partition, []byte(c.key), []byte(c.value)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// FuzzOracleAndWireAgree gives any bytes to both decoders of S3.
func FuzzOracleAndWireAgree(f *testing.F) {
	h := workload.NewHistory(workload.HistoryOptions{Seed: 3, Records: 40, Keys: 3, Days: 20, Partitions: 2, Poison: 60, Hostile: true})
	for _, rec := range h.Records {
		if len(rec.Value) < 4_000 && len(rec.Key) < 4_000 {
			f.Add(rec.Key, rec.Value, rec.Partition == 1)
		}
	}
	f.Fuzz(func(t *testing.T, key, value []byte, second bool) {
		p := ledger.Partition(0)
		if second {
			p = 1
		}
		newJudges(t, h).agree(t, p, key, value)
	})
}
