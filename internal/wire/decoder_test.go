package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/manifest"
)

// fault is one row of the table of S3: what breaks a record so that this row applies.
type fault struct {
	code ledger.Rejection
	make func(r *parts)
}

// parts are what a record of the tests is made of.
type parts struct {
	schema, extra, revision, day, item, keyItem, tail string
	partition                                         ledger.Partition
}

func (r parts) record() ledger.SourceRecord {
	return ledger.SourceRecord{
		Partition: r.partition, Offset: 7,
		Key: []byte(`{"item":"` + r.keyItem + `","location":"berlin"}`),
		Value: []byte(`{"schema":` + r.schema + `,"txn_id":"T-1","revision":` + r.revision + `,"state":"active","item":"` + r.item +
			`","location":"berlin","day":"` + r.day + `","kind":"receipt","quantity":1` + r.extra + `}` + r.tail),
	}
}

func whole() parts {
	return parts{schema: "1", revision: "1", day: "2026-01-01", item: "widget", keyItem: "widget"}
}

// faults are the nine rows in the order of the table.
var faults = []fault{
	{ledger.TooLarge, func(r *parts) { r.tail += strings.Repeat(" ", ledger.MaxValueBytes) }},
	{ledger.Malformed, func(r *parts) { r.tail += "x" }},
	{ledger.UnsupportedSchema, func(r *parts) { r.schema = "2" }},
	{ledger.Malformed, func(r *parts) { r.extra = `,"note":null` }},
	{ledger.InvalidValue, func(r *parts) { r.revision = "0" }},
	{ledger.OutOfHorizon, func(r *parts) { r.day = "2025-12-31" }},
	{ledger.UnknownKey, func(r *parts) { r.item, r.keyItem = "gizmo", "gizmo" }},
	{ledger.KeyMismatch, func(r *parts) { r.keyItem = "other" }},
	{ledger.Routing, func(r *parts) { r.partition = 1 }},
}

// SC15: one record for each code, for each pair of faults the earlier code, and so for every set of faults; exact bytes
// are kept and the next record is processed.
func TestSC15EarliestFaultDecides(t *testing.T) {
	d := NewDecoder(workedConfig(t))
	for set := 1; set < 1<<len(faults); set++ {
		r, want := whole(), ledger.Rejection(0)
		for i, f := range faults {
			if set&(1<<i) == 0 {
				continue
			}
			f.make(&r)
			if want == 0 {
				want = f.code
			}
		}
		rec := r.record()
		out := d.Decode(rec)
		if out.Rejection != want || out.Evidence == nil {
			t.Fatalf("faults %b: %v, want %v: %.300s", set, out.Rejection, want, rec.Value)
		}
		if want != ledger.TooLarge && (!bytes.Equal(out.Evidence.Value, rec.Value) || !bytes.Equal(out.Evidence.Key, rec.Key)) {
			t.Fatalf("faults %b: evidence is not the record's bytes", set)
		}
		if out.Record.Partition != rec.Partition || out.Record.Offset != 7 {
			t.Fatalf("faults %b: coordinates %d/%d", set, out.Record.Partition, out.Record.Offset)
		}
		if next := d.Decode(whole().record()); next.Rejection != 0 {
			t.Fatalf("after faults %b a valid record is %v", set, next.Rejection)
		}
	}
}

const (
	active    = `{"schema":1,"txn_id":"T-1","revision":1,"state":"active","item":"widget","location":"berlin","day":"2026-01-01","kind":"receipt","quantity":1}`
	cancelled = `{"schema":1,"txn_id":"T-1","revision":2,"state":"cancelled","item":"widget","location":"berlin"}`
)

// Rows 2 to 5 of S3, one case a way to break them. Each is a valid value with old replaced by new.
func TestSC15ValueRejections(t *testing.T) {
	long := strings.Repeat("x", ledger.MaxIdentifierBytes)
	for _, c := range []struct {
		from, old, new string
		want           ledger.Rejection
	}{
		{active, active, "", ledger.Malformed}, {active, active, " ", ledger.Malformed}, {active, active, "[]", ledger.Malformed}, {active, active, "1", ledger.Malformed},
		{active, active, "null", ledger.Malformed}, {active, active, "{}", ledger.Malformed}, {active, active, `"schema"`, ledger.Malformed}, {active, active, `{`, ledger.Malformed},
		{active, `{"schema"`, "\ufeff" + `{"schema"`, ledger.Malformed}, {active, `1}`, `1}{}`, ledger.Malformed}, {active, `1}`, "1}\x00", ledger.Malformed},
		{active, `1}`, `1,}`, ledger.Malformed}, {active, `1,`, `1,,`, ledger.Malformed}, {active, `"txn_id"`, `txn_id`, ledger.Malformed}, {active, `:1,`, `1,`, ledger.Malformed},
		{active, `T-1`, "T\n1", ledger.Malformed}, {active, `T-1`, "\xff", ledger.Malformed}, {active, `T-1`, "\xed\xa0\x80", ledger.Malformed}, {active, `T-1`, "\xc0\x80", ledger.Malformed},
		{active, `T-1`, `\ud800`, ledger.Malformed}, {active, `T-1`, `\udc00\ud800`, ledger.Malformed}, {active, `T-1`, `\ud800\ud800`, ledger.Malformed}, {active, `T-1`, `\ud800\u0041`, ledger.Malformed},
		{active, `T-1`, `\x41`, ledger.Malformed}, {active, `T-1`, `\u00g0`, ledger.Malformed}, {active, `T-1`, `\u12`, ledger.Malformed}, {active, `T-1"`, `T-1`, ledger.Malformed}, {active, `"T-1"`, `'T-1'`, ledger.Malformed},
		{active, `"quantity":1}`, `"quantity":1,"quantity":1}`, ledger.Malformed}, {active, `"quantity":1}`, `"quantity":1,"q\u0075antity":1}`, ledger.Malformed},
		{active, `"schema":1,`, ``, ledger.Malformed}, {active, `"schema":1`, `"schema":"1"`, ledger.Malformed}, {active, `"schema":1`, `"schema":1.0`, ledger.Malformed}, {active, `"schema":1`, `"schema":1e0`, ledger.Malformed},
		{active, `"schema":1`, `"schema":-1`, ledger.Malformed}, {active, `"schema":1`, `"schema":01`, ledger.Malformed}, {active, `"schema":1`, `"schema":null`, ledger.Malformed}, {active, `"schema":1`, `"schema":[1]`, ledger.Malformed},
		{active, `"schema":1`, `"Schema":1`, ledger.Malformed}, {active, `"schema":1`, `"schema":2,"schema":1`, ledger.Malformed}, {active, `"schema":1`, `"schema":2,"a":1,"a":2`, ledger.Malformed},
		{active, `"schema":1`, `"schema":2,"a":[{"b":1,"c":{"d":0},"b":2}]`, ledger.Malformed}, {active, `"schema":1`, `"schema":2,"a":tru`, ledger.Malformed}, {active, `"schema":1`, `"schema":2,"a":+1`, ledger.Malformed},
		{active, `"schema":1`, `"schema":2,"a":.5`, ledger.Malformed}, {active, `"schema":1`, `"schema":2,"a":1.`, ledger.Malformed}, {active, `"schema":1`, `"schema":2,"a":1e`, ledger.Malformed}, {active, `"schema":1`, `"schema":2,"a":-`, ledger.Malformed},
		{active, `"schema":1`, `"schema":2,"a":[1,]`, ledger.Malformed}, {active, `"schema":1`, `"schema":2,"a":[1 2]`, ledger.Malformed}, {active, `"schema":1`, `"schema":2,"a":NaN`, ledger.Malformed},

		{active, `"schema":1`, `"schema":0`, ledger.UnsupportedSchema}, {active, `"schema":1`, `"schema":2`, ledger.UnsupportedSchema}, {active, `"schema":1`, `"schema":11`, ledger.UnsupportedSchema},
		{active, `"schema":1`, `"schema":1` + strings.Repeat("0", 60_000), ledger.UnsupportedSchema}, {active, active, `{"schema":2}`, ledger.UnsupportedSchema},
		{active, `"schema":1`, `"schema":3,"a":[1.5e-3,-0,true,false,null,{"b":{}},[]],"Schema":"\ud83d\ude00"`, ledger.UnsupportedSchema}, {active, `"revision":1`, `"revision":-1,"\u0061":0`, ledger.Malformed},

		{active, `"quantity":1}`, `"quantity":1,"note":1}`, ledger.Malformed}, {active, `"quantity":1}`, `"Quantity":1}`, ledger.Malformed}, {active, `"kind"`, "\"\u212aind\"", ledger.Malformed},
		{active, `,"quantity":1`, ``, ledger.Malformed}, {active, `"txn_id":"T-1",`, ``, ledger.Malformed}, {active, `"revision":1,`, ``, ledger.Malformed}, {active, `"state":"active",`, ``, ledger.Malformed},
		{active, `"item":"widget",`, ``, ledger.Malformed}, {active, `"location":"berlin",`, ``, ledger.Malformed}, {active, `"day":"2026-01-01",`, ``, ledger.Malformed}, {active, `"kind":"receipt",`, ``, ledger.Malformed},
		{active, `"T-1"`, `null`, ledger.Malformed}, {active, `"T-1"`, `1`, ledger.Malformed}, {active, `"T-1"`, `["T-1"]`, ledger.Malformed}, {active, `"T-1"`, `{}`, ledger.Malformed}, {active, `"active"`, `true`, ledger.Malformed},
		{active, `"active"`, `null`, ledger.Malformed}, {active, `"2026-01-01"`, `20260101`, ledger.Malformed}, {active, `"receipt"`, `1`, ledger.Malformed},
		{active, `"quantity":1`, `"quantity":"1"`, ledger.Malformed}, {active, `"quantity":1`, `"quantity":-1`, ledger.Malformed}, {active, `"quantity":1`, `"quantity":-0`, ledger.Malformed}, {active, `"quantity":1`, `"quantity":1.0`, ledger.Malformed},
		{active, `"quantity":1`, `"quantity":1e2`, ledger.Malformed}, {active, `"quantity":1`, `"quantity":1E2`, ledger.Malformed}, {active, `"quantity":1`, `"quantity":01`, ledger.Malformed}, {active, `"quantity":1`, `"quantity":+1`, ledger.Malformed},
		{active, `"revision":1`, `"revision":null`, ledger.Malformed}, {active, `"revision":1`, `"revision":1.5`, ledger.Malformed},
		{cancelled, `"berlin"}`, `"berlin","day":"2026-01-01"}`, ledger.Malformed}, {cancelled, `"berlin"}`, `"berlin","kind":"receipt"}`, ledger.Malformed}, {cancelled, `"berlin"}`, `"berlin","quantity":1}`, ledger.Malformed},
		{cancelled, `"revision":2,`, ``, ledger.Malformed}, {cancelled, `"txn_id":"T-1",`, ``, ledger.Malformed},

		{active, `"active"`, `"Active"`, ledger.InvalidValue}, {active, `"active"`, `""`, ledger.InvalidValue}, {active, active, `{"schema":1,"state":"x"}`, ledger.InvalidValue}, {active, active, `{"schema":1,"state":"x","quantity":0}`, ledger.InvalidValue},
		{active, active, `{"schema":1,"state":"x","quantity":1.5}`, ledger.Malformed}, {active, active, `{"schema":1,"state":"x","day":1}`, ledger.Malformed}, {active, active, `{"schema":1,"state":"x","note":1}`, ledger.Malformed}, {active, active, `{"state":"x"}`, ledger.Malformed},
		{active, `"T-1"`, `""`, ledger.InvalidValue}, {active, `"widget"`, `""`, ledger.InvalidValue}, {active, `"berlin"`, `""`, ledger.InvalidValue}, {active, `T-1`, long + "x", ledger.InvalidValue}, {active, `widget`, long + "x", ledger.InvalidValue},
		{active, `berlin`, long + "x", ledger.InvalidValue}, {active, `T-1`, strings.Repeat(`\u20ac`, 171), ledger.InvalidValue}, {active, `"revision":1`, `"revision":0`, ledger.InvalidValue}, {active, `"revision":1`, `"revision":9223372036854775808`, ledger.InvalidValue},
		{active, `"revision":1`, `"revision":` + strings.Repeat("9", 30_000), ledger.InvalidValue}, {active, `"quantity":1`, `"quantity":0`, ledger.InvalidValue}, {active, `"quantity":1`, `"quantity":9223372036854775808`, ledger.InvalidValue},
		{active, `"quantity":1`, `"quantity":327267367867168100000`, ledger.InvalidValue}, {active, `"quantity":1`, `"quantity":18446744073709551617`, ledger.InvalidValue}, {active, `receipt","quantity":1`, `closing_count","quantity":9223372036854775808`, ledger.InvalidValue},
		{active, `receipt`, `Receipt`, ledger.InvalidValue}, {active, `receipt`, ``, ledger.InvalidValue}, {active, `receipt`, `count`, ledger.InvalidValue}, {active, `2026-01-01`, `2026-02-29`, ledger.InvalidValue}, {active, `2026-01-01`, `2026-1-1`, ledger.InvalidValue},
		{active, `2026-01-01`, `0000-12-31`, ledger.InvalidValue}, {active, `2026-01-01`, `10000-01-01`, ledger.InvalidValue}, {active, `2026-01-01`, `2026-01-01T00:00:00Z`, ledger.InvalidValue}, {active, `2026-01-01`, ``, ledger.InvalidValue},
		{cancelled, `"revision":2`, `"revision":0`, ledger.InvalidValue},

		{active, `T-1`, long, 0}, {active, `widget`, long, 0}, {active, `berlin`, long, 0}, {active, `T-1`, strings.Repeat("é", 256), 0}, {active, `T-1`, `\u0000`, 0}, {active, `T-1`, "\u0080\u2028\U0010ffff", 0}, {active, `T-1`, `\/\b\f\n\r\t\"\\`, 0},
		{active, `T-1`, `\ud83d\ude00`, 0}, {active, `"revision":1`, `"revision":9223372036854775807`, 0}, {active, `"quantity":1`, `"quantity":9223372036854775807`, 0}, {active, `receipt","quantity":1`, `closing_count","quantity":0`, 0},
		{active, `receipt","quantity":1`, `opening_count","quantity":0`, 0}, {active, `2026-01-01`, `0001-01-01`, 0}, {active, `2026-01-01`, `9999-12-31`, 0}, {active, `"quantity":1}`, "\t\"q\\u0075antity\"\r\n : 1 } \n", 0},
		{active, `"active"`, `"\u0061ctive"`, 0}, {active, `2026-01-01`, `2026\u002d01-01`, 0}, {cancelled, `x`, `x`, 0},
	} {
		value := []byte(strings.Replace(c.from, c.old, c.new, 1))
		got, code, p := ParseValue(value)
		if code != c.want || (code == 0) != (p == nil) || (code != 0) != (got == ledger.Assertion{}) {
			t.Errorf("%.200s: %v %v, want %v", value, code, p, c.want)
		}
		if p != nil && (p.Column < 1 || p.Column > len(value)+1 || p.Reason == "") {
			t.Errorf("%.200s: column %d of %d, reason %q", value, p.Column, len(value), p.Reason)
		}
		if a, ref := referenceParse(value); ref != c.want || a != got {
			t.Errorf("%.200s: the reference decoder says %v, want %v", value, ref, c.want)
		}
	}
}

// Row 8: a broker key that is absent, no key encoding, or another stock key, whether that one is configured or not.
// Row 7 comes first. Each is decoded twice: what the decoder remembers of a key changes nothing.
func TestSC15KeyRejections(t *testing.T) {
	d := NewDecoder(workedConfig(t))
	for _, c := range []struct {
		key  []byte
		item string
		want ledger.Rejection
	}{
		{nil, "widget", ledger.KeyMismatch}, {[]byte{}, "widget", ledger.KeyMismatch}, {[]byte(`null`), "widget", ledger.KeyMismatch}, {[]byte("\xff"), "widget", ledger.KeyMismatch},
		{[]byte(`{"item":"other","location":"berlin"}`), "widget", ledger.KeyMismatch}, {[]byte(`{"item":"widget","location":"paris"}`), "widget", ledger.KeyMismatch},
		{[]byte(`{"item":"widget","location":"berlin","x":1}`), "widget", ledger.KeyMismatch}, {[]byte(`{"item":"widget","location":"berlin"}}`), "widget", ledger.KeyMismatch},
		{[]byte(`{"item":"Widget","location":"berlin"}`), "widget", ledger.KeyMismatch}, {[]byte(`["widget","berlin"]`), "widget", ledger.KeyMismatch},
		{nil, "gizmo", ledger.UnknownKey}, {[]byte(`{"item":"widget","location":"berlin"}`), "gizmo", ledger.UnknownKey}, {[]byte(`{"item":"gizmo","location":"berlin"}`), "gizmo", ledger.UnknownKey},
		{[]byte(`{"location" : "berlin", "item" : "\u0077idget"}`), "widget", 0},
	} {
		value := []byte(strings.Replace(active, "widget", c.item, 1))
		for range 2 {
			if out := d.Decode(ledger.SourceRecord{Key: c.key, Value: value}); out.Rejection != c.want {
				t.Errorf("key %q, item %s: %v, want %v", c.key, c.item, out.Rejection, c.want)
			}
		}
	}
}

// The limits of S3 on sizes and depth, at the limit and one past it.
func TestLimits(t *testing.T) {
	d := NewDecoder(workedConfig(t))
	key := `{"item":"widget","location":"berlin"}`
	pad := func(s string, n int) []byte { return []byte(s + strings.Repeat(" ", n-len(s))) }
	nested := func(n int) []byte {
		return []byte(`{"schema":2,"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`)
	}
	objects := func(n int) []byte {
		return []byte(`{"schema":2,"a":` + strings.Repeat(`{"a":`, n-1) + "1" + strings.Repeat("}", n-1) + `}`)
	}
	for _, c := range []struct {
		name       string
		key, value []byte
		want       ledger.Rejection
	}{
		{"value at the limit", []byte(key), pad(active, 65_536), 0},
		{"value past the limit", []byte(key), pad(active, 65_537), ledger.TooLarge},
		{"key at the limit", pad(key, 8_192), []byte(active), 0},
		{"key past the limit", pad(key, 8_193), []byte(active), ledger.TooLarge},
		{"key past the limit, value absent", pad(key, 8_193), nil, ledger.TooLarge},
		{"value absent", []byte(key), nil, ledger.Malformed},
		{"both absent", nil, nil, ledger.Malformed},
		{"64 containers", []byte(key), nested(64), ledger.UnsupportedSchema},
		{"65 containers", []byte(key), nested(65), ledger.Malformed},
		{"64 objects", []byte(key), objects(64), ledger.UnsupportedSchema},
		{"65 objects", []byte(key), objects(65), ledger.Malformed},
		{"thousands of brackets", []byte(key), bytes.Repeat([]byte("["), 65_536), ledger.Malformed},
	} {
		if out := d.Decode(ledger.SourceRecord{Key: c.key, Value: c.value}); out.Rejection != c.want {
			t.Errorf("%s: %v, want %v", c.name, out.Rejection, c.want)
		}
	}
}

// Many names in one object cost no quadratic time: 13,000 of them are read at once, and a repeated one is found.
func TestManyNames(t *testing.T) {
	var b strings.Builder
	for i := range 7_000 {
		b.WriteString(`"` + strconv.Itoa(i) + `":0,`)
	}
	for _, form := range []string{`{"schema":2,%s"last":0}`, `{"schema":2,"a":{%s"last":0}}`} {
		if _, code, _ := ParseValue(fmt.Appendf(nil, form, b.String())); code != ledger.UnsupportedSchema {
			t.Errorf("%s: %v", form, code)
		}
		if _, code, p := ParseValue(fmt.Appendf(nil, form, b.String()+`"3\u0030":0,`)); code != ledger.Malformed || !strings.Contains(p.Reason, `"30"`) {
			t.Errorf("%s with a repeated name: %v %v", form, code, p)
		}
	}
}

func TestHorizon(t *testing.T) {
	for _, c := range []struct {
		origin, day string
		want        ledger.Rejection
	}{
		{"2026-01-01", "2025-12-31", ledger.OutOfHorizon}, {"2026-01-01", "2026-01-01", 0}, {"2026-01-01", "2126-01-01", 0}, {"2026-01-01", "2126-01-02", ledger.OutOfHorizon},
		{"0001-01-01", "0001-01-01", 0}, {"9999-12-31", "9999-12-31", 0}, {"9999-12-31", "9999-12-30", ledger.OutOfHorizon}, {"9999-12-31", "0001-01-01", ledger.OutOfHorizon},
		{"0001-01-01", "9999-12-31", ledger.OutOfHorizon},
	} {
		cfg := *workedConfig(t)
		cfg.LedgerOrigin, _ = ledger.ParseDay(c.origin)
		built, err := manifest.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r := whole()
		r.day = c.day
		if out := NewDecoder(built).Decode(r.record()); out.Rejection != c.want {
			t.Errorf("origin %s, day %s: %v, want %v", c.origin, c.day, out.Rejection, c.want)
		}
	}
}

// A cancellation has no day, so no horizon; it is held to key and partition all the same.
func TestCancelledIsRouted(t *testing.T) {
	d := NewDecoder(workedConfig(t))
	rec := ledger.SourceRecord{Key: []byte(`{"item":"widget","location":"berlin"}`), Value: []byte(cancelled)}
	want := ledger.Assertion{Key: ledger.StockKey{Item: "widget", Location: "berlin"}, TxnID: "T-1", Revision: 2, Payload: ledger.Payload{State: ledger.Cancelled}}
	if out := d.Decode(rec); out.Assertion != want || out.Rejection != 0 {
		t.Errorf("%+v", out)
	}
	rec.Partition = 1
	if out := d.Decode(rec); out.Rejection != ledger.Routing {
		t.Errorf("%v, want ROUTING", out.Rejection)
	}
}

func TestTooLargeEvidence(t *testing.T) {
	key, value := bytes.Repeat([]byte("k"), 9_000), bytes.Repeat([]byte("v"), 70_000)
	out := NewDecoder(workedConfig(t)).Decode(ledger.SourceRecord{Key: key, Value: value})
	want := &ledger.Evidence{Key: key[:8_192], Value: value[:65_536], KeyLength: 9_000, ValueLength: 70_000, KeySHA: sha256.Sum256(key), ValueSHA: sha256.Sum256(value)}
	if d := cmp.Diff(want, out.Evidence); d != "" || out.Rejection != ledger.TooLarge {
		t.Errorf("%v (-want +got)\n%s", out.Rejection, d)
	}
}

// Evidence tells an absent key or value from an empty one, and shares no memory with the record.
func TestEvidenceOfAbsentAndEmpty(t *testing.T) {
	d := NewDecoder(workedConfig(t))
	absent, empty := d.Decode(ledger.SourceRecord{}).Evidence, d.Decode(ledger.SourceRecord{Key: []byte{}, Value: []byte{}}).Evidence
	if absent.Key != nil || absent.Value != nil || empty.Key == nil || empty.Value == nil {
		t.Errorf("absent %v, empty %v", absent, empty)
	}
	rec := ledger.SourceRecord{Key: []byte("k"), Value: []byte("v")}
	e := d.Decode(rec).Evidence
	rec.Key[0], rec.Value[0] = 'x', 'x'
	if string(e.Key) != "k" || string(e.Value) != "v" {
		t.Errorf("evidence changed with the record: %s %s", e.Key, e.Value)
	}
}

// The framing of ledger.RecordDigest, hashed here from literal bytes.
func TestDigestFraming(t *testing.T) {
	absent := strings.Repeat("ff", 8)
	for _, c := range []struct {
		key, value []byte
		framed     string
	}{
		{nil, nil, absent + absent}, {[]byte{}, nil, "0000000000000000" + absent}, {nil, []byte{}, absent + "0000000000000000"},
		{[]byte("a"), []byte("bc"), "000000000000000161" + "00000000000000026263"}, {[]byte("ab"), []byte("c"), "00000000000000026162" + "000000000000000163"},
		{[]byte("a"), make([]byte, 2_000), "000000000000000161" + "00000000000007d0" + strings.Repeat("00", 2_000)},
		{[]byte("a"), make([]byte, 1_007), "000000000000000161" + "00000000000003ef" + strings.Repeat("00", 1_007)},
		{[]byte("a"), make([]byte, 1_008), "000000000000000161" + "00000000000003f0" + strings.Repeat("00", 1_008)},
	} {
		framed, err := hex.DecodeString(c.framed)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(framed)
		if got := Digest(c.key, c.value); !bytes.Equal(got[:], sum[:16]) {
			t.Errorf("key %q, %d bytes of value: %x, want %x", c.key, len(c.value), got, sum[:16])
		}
	}
}

// I22: keys are remembered by their bytes, within a bound that all partitions share; results stay right when the memory is emptied.
func TestI22DecoderRemembersKeysWithinABound(t *testing.T) {
	rememberKeys(t, 1, 16<<20)
	rememberKeys(t, 1_024, 256<<10)
}

func rememberKeys(t *testing.T, partitions int32, limit int) {
	t.Helper()
	cfg, err := manifest.New(manifest.Config{Namespace: "n", SourceIncarnation: testIncarnation, LedgerOrigin: 1, Partitions: partitions, OpenKeys: &manifest.Terms{}})
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecoder(cfg)
	pad := strings.Repeat(" ", 8_000)
	most := 0
	for i := range 5_000 {
		item := strconv.Itoa(i)
		rec := ledger.SourceRecord{Key: []byte(`{"item":"` + item + `","location":"x"}` + pad),
			Value: []byte(`{"schema":1,"txn_id":"t","revision":1,"state":"cancelled","item":"` + item + `","location":"x"}`)}
		rec.Partition, _ = cfg.Route(ledger.StockKey{Item: item, Location: "x"})
		if out := d.Decode(rec); out.Rejection != 0 || out.Assertion.Key.Item != item {
			t.Fatalf("%s: %v %v", item, out.Rejection, out.Assertion)
		}
		if most = max(most, d.cached); d.cached > limit || len(d.keys) > limit/8_000 {
			t.Fatalf("%d bytes of %d keys", d.cached, len(d.keys))
		}
	}
	if most < limit-10_000 {
		t.Errorf("of %d partitions one remembers %d bytes, of %d", partitions, most, limit)
	}
}

func TestParseKey(t *testing.T) {
	for _, c := range []struct {
		key            string
		item, location string
		canonical      bool
	}{
		{`{"item":"widget","location":"berlin"}`, "widget", "berlin", true},
		{" {\r\n\"location\"\t:\"berlin\" , \"item\" : \"widget\" } ", "widget", "berlin", false},
		{`{"\u0069tem":"\u0077idget","location":"berlin"}`, "widget", "berlin", false},
		{`{"item":"\u0000\b\t\n\f\r\"\\/<>&","location":"é😀` + "\u2028\u007f" + `"}`, "\x00\b\t\n\f\r\"\\/<>&", "é😀\u2028\x7f", true},
		{`{"item":"\/","location":"x"}`, "/", "x", false},
	} {
		want := ledger.StockKey{Item: c.item, Location: c.location}
		if got, ok := ParseKey([]byte(c.key)); !ok || got != want {
			t.Errorf("ParseKey(%s) = %q %v", c.key, got, ok)
		}
		if got, ok := ParseCanonicalKey([]byte(c.key)); ok != c.canonical || ok && got != want {
			t.Errorf("ParseCanonicalKey(%s) = %q %v, want %v", c.key, got, ok, c.canonical)
		}
		if c.canonical && string(AppendKey(nil, want)) != c.key {
			t.Errorf("AppendKey(%q) = %s", want, AppendKey(nil, want))
		}
	}
	for _, bad := range []string{``, ` `, `null`, `[]`, `"widget"`, `{}`, `{"item":"a"}`, `{"location":"b"}`, `{"item":"a","location":"b","x":1}`, `{"item":"a","location":"b","item":"a"}`,
		`{"item":"a","item":"a","location":"b"}`, `{"item":"","location":"","item":"a","location":"b"}`, `{"item":1,"location":"b"}`, `{"item":null,"location":"b"}`, `{"Item":"a","location":"b"}`, `{"item":"","location":"b"}`,
		`{"item":"a","location":""}`, `{"item":"a","location":"b"}x`, "\ufeff" + `{"item":"a","location":"b"}`, `{"item":"\ud800","location":"b"}`, "{\"item\":\"\xff\",\"location\":\"b\"}",
		`{"item":"` + strings.Repeat("x", 513) + `","location":"b"}`, `{"item":"a","location":["b"]}`, `{"item":"a" "location":"b"}`, `{"item":"a","location":"b"`} {
		if k, ok := ParseKey([]byte(bad)); ok {
			t.Errorf("ParseKey(%q) = %q", bad, k)
		}
	}
}

// C40: spellings that look alike stay distinct, and come back byte for byte (SC37).
func TestC40IdentifiersAreKeptExactly(t *testing.T) {
	cfg, err := manifest.New(manifest.Config{Namespace: "n", SourceIncarnation: testIncarnation, LedgerOrigin: 1, Partitions: 1, OpenKeys: &manifest.Terms{}})
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecoder(cfg)
	seen := map[ledger.StockKey]bool{}
	for _, item := range []string{"caf\u00e9", "cafe\u0301", "85123A", "85123a", "85123A ", " 85123A", "a\x00", "a", "<b>&'\"", "\u202e\u2066", "👩‍👩‍👧", strings.Repeat("é", 256)} {
		a := ledger.Assertion{Key: ledger.StockKey{Item: item, Location: item}, TxnID: item, Revision: math.MaxInt64,
			Payload: ledger.Payload{State: ledger.Active, Kind: ledger.ClosingCount, Day: 36_525, Quantity: math.MaxInt64}}
		out := d.Decode(ledger.SourceRecord{Key: AppendKey(nil, a.Key), Value: AppendAssertion(nil, a)})
		if out.Rejection != 0 || out.Assertion != a || seen[a.Key] {
			t.Errorf("%q: %v %+v", item, out.Rejection, out.Assertion)
		}
		seen[a.Key] = true
	}
}
