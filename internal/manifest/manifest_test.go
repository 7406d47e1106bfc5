package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/absent"
	"amends/internal/ledger"
)

const (
	incarnation = "kafka:00112233445566778899aabbccddeeff"
	another     = "kafka:ffeeddccbbaa99887766554433221100"
)

// full is the example of S2 with an output.
const full = `{
  "source_topic": "amends-demo-source",
  "config": {
    "schema_version": 1,
    "namespace": "demo",
    "source_incarnation": "kafka:00112233445566778899aabbccddeeff",
    "ledger_origin": "2026-01-01",
    "partitions": 2,
    "quantity_scale": 0,
    "stock_keys": [
      {"item": "widget", "location": "berlin", "partition": 0, "opening_balance": 0, "threshold": 60}
    ],
    "open_keys": {"opening_balance": 0, "threshold": null}
  },
  "output": {"topic": "amends-demo-output", "incarnation": "kafka:ffeeddccbbaa99887766554433221100", "partitions": 2}
}
`

func ptr(n int64) *int64 { return &n }

func date(t testing.TB, s string) ledger.Day {
	t.Helper()
	d, ok := ledger.ParseDay(s)
	if !ok {
		t.Fatalf("%s is no day", s)
	}
	return d
}

func must(c *Config, err error) *Config {
	if err != nil {
		panic(err)
	}
	return c
}

var ignoreIndex = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".index" }, cmp.Ignore())

func TestParseReadsTheExample(t *testing.T) {
	got, err := Parse([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := &Manifest{
		SourceTopic: "amends-demo-source",
		Config: &Config{Namespace: "demo", SourceIncarnation: incarnation, LedgerOrigin: date(t, "2026-01-01"), Partitions: 2,
			StockKeys: []StockKey{{Key: ledger.StockKey{Item: "widget", Location: "berlin"}, Terms: Terms{Threshold: ptr(60)}}}, OpenKeys: &Terms{}},
		Output: &Output{Topic: "amends-demo-output", Incarnation: another, Partitions: 2},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(Config{}), ignoreIndex); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if text := string(got.Append(nil)); text != full {
		t.Errorf("written again (-want +got)\n%s", cmp.Diff(full, text))
	}
}

// A manifest without output and open keys, and one with hostile identifiers, are written and read back the same.
func TestAppendIsReadBack(t *testing.T) {
	small := must(Default("demo", incarnation))
	hostile := must(New(Config{Namespace: "a.b_c-9", SourceIncarnation: incarnation, LedgerOrigin: ledger.MaxDay, Partitions: 1024, QuantityScale: 9, StockKeys: []StockKey{
		{Key: ledger.StockKey{Item: "\x00\"\\\b\x1f", Location: "é😀\u2028"}, Partition: 1023, Terms: Terms{OpeningBalance: -1 << 63, Threshold: ptr(1<<63 - 1)}},
		{Key: ledger.StockKey{Item: "b", Location: "a"}, Terms: Terms{OpeningBalance: 1<<63 - 1, Threshold: ptr(-1 << 63)}},
	}}))
	none := must(New(Config{Namespace: "n", SourceIncarnation: incarnation, LedgerOrigin: 1, Partitions: 1, OpenKeys: &Terms{Threshold: ptr(-5)}}))
	for _, m := range []*Manifest{{SourceTopic: "s", Config: small}, {SourceTopic: "S.9_-", Config: hostile}, {SourceTopic: "s", Config: none, Output: &Output{"o", another, 1}}} {
		text := m.Append(nil)
		got, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again := string(got.Append(nil)); again != string(text) || got.Config.Digest() != m.Config.Digest() {
			t.Errorf("(-want +got)\n%s", cmp.Diff(string(text), again))
		}
		if inside, err := m.MarshalJSON(); err != nil || string(inside) != string(text) {
			t.Errorf("MarshalJSON: %s %v", inside, err)
		}
	}
}

// The digest is SHA-256 over bytes written here by hand after S2: keys sorted, fields in order, null written,
// open_keys left out when absent. The sums of these bytes were taken with sha256sum.
func TestDigestGolden(t *testing.T) {
	b := must(New(Config{Namespace: "n", SourceIncarnation: incarnation, LedgerOrigin: date(t, "0001-01-01"), Partitions: 3, QuantityScale: 2, StockKeys: []StockKey{
		{Key: ledger.StockKey{Item: "b", Location: "a"}, Partition: 2, Terms: Terms{OpeningBalance: -7, Threshold: ptr(-1)}},
		{Key: ledger.StockKey{Item: "a", Location: "b"}, Partition: 1},
		{Key: ledger.StockKey{Item: "a\x00\"", Location: "é"}, Terms: Terms{OpeningBalance: 5}},
		{Key: ledger.StockKey{Item: "a", Location: "a"}, Terms: Terms{Threshold: ptr(0)}},
	}, OpenKeys: &Terms{OpeningBalance: 1}}))
	for _, c := range []struct {
		cfg            *Config
		canonical, sum string
	}{
		{must(Default("demo", incarnation)), `{"schema_version":1,"namespace":"demo","source_incarnation":"kafka:00112233445566778899aabbccddeeff","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":0,` +
			`"stock_keys":[{"item":"widget","location":"berlin","partition":0,"opening_balance":0,"threshold":60}]}`, "f78df06e4488615ccc85e71806b81026331bfa6acee3911dcab94eabb8e49bfc"},
		{b, `{"schema_version":1,"namespace":"n","source_incarnation":"kafka:00112233445566778899aabbccddeeff","ledger_origin":"0001-01-01","partitions":3,"quantity_scale":2,"stock_keys":[` +
			`{"item":"a","location":"a","partition":0,"opening_balance":0,"threshold":0},{"item":"a","location":"b","partition":1,"opening_balance":0,"threshold":null},` +
			`{"item":"a\u0000\"","location":"é","partition":0,"opening_balance":5,"threshold":null},{"item":"b","location":"a","partition":2,"opening_balance":-7,"threshold":-1}],` +
			`"open_keys":{"opening_balance":1,"threshold":null}}`, "c5fb16751d03b79604a72193dfaed54a881d35e535b46f9b8f3d568ec5d1cd0e"},
	} {
		if d := cmp.Diff(c.canonical, string(c.cfg.Canonical())); d != "" {
			t.Errorf("canonical (-want +got)\n%s", d)
		}
		if got := fmt.Sprintf("%x", c.cfg.Digest()); got != c.sum {
			t.Errorf("digest %s, want %s", got, c.sum)
		}
		if sum := sha256.Sum256([]byte(c.canonical)); hex.EncodeToString(sum[:]) != c.sum {
			t.Errorf("the golden sum is not that of the golden bytes")
		}
	}
}

// The order of members and keys in a file does not matter to the configuration.
func TestDigestIgnoresFileOrder(t *testing.T) {
	a, err := ParseConfig([]byte(`{"schema_version":1,"namespace":"n","ledger_origin":"2026-01-01","partitions":2,"quantity_scale":0,"stock_keys":[
		{"item":"b","location":"x","partition":0,"opening_balance":0,"threshold":null},{"item":"a","location":"x","partition":1,"opening_balance":0,"threshold":null}]}`), incarnation)
	must(a, err)
	b, err := ParseConfig([]byte(`{"stock_keys":[{"threshold":null,"opening_balance":0,"partition":1,"location":"x","item":"\u0061"},
		{"item":"b","location":"x","partition":0,"opening_balance":0,"threshold":null}],"quantity_scale":0,"partitions":2,"ledger_origin":"2026-01-01","namespace":"n","schema_version":1}`), incarnation)
	if must(b, err).Digest() != a.Digest() || Differences(a, b) != nil {
		t.Errorf("%s\n%s", a.Canonical(), b.Canonical())
	}
}

// Each replacement makes the example a manifest that S2 does not allow; the error names the member and its line.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct {
		old, new, member, text string
		line                   int
	}{
		{full, ``, ``, `ends too early`, 1}, {full, `[]`, ``, `an array; allowed: a JSON object`, 1}, {full, `null`, ``, `null; allowed: a JSON object`, 1},
		{"{\n  \"source", "\ufeff{\n  \"source", ``, `not valid JSON`, 1}, {"  \"output", "// x\n \"output", ``, `not valid JSON`, 15}, {"2}\n}\n", "2}\n}\n{}", ``, `data follows`, 17}, {"2}\n}\n", "2}\n}x", ``, `not valid JSON`, 16},
		{"2}\n}\n", "2}\n", ``, `ends too early`, 16},
		{`"source_topic"`, `"Source_topic"`, ``, `unknown member "Source_topic"; allowed: source_topic, config, output`, 2}, {`"output"`, `"password"`, ``, `unknown member "password"`, 15},
		{`"output"`, `"source_topic"`, `source_topic`, `twice`, 15}, {`"namespace": "demo"`, `"namespace": "demo", "n\u0061mespace": "demo"`, `config.namespace`, `twice`, 5},
		{`  "source_topic": "amends-demo-source",` + "\n", ``, `source_topic`, `missing`, 15}, {`"partitions": 2,` + "\n", "\n", `config.partitions`, `missing`, 14},
		{`"amends-demo-source"`, `1`, `source_topic`, `1; allowed: a string`, 2}, {`"amends-demo-source"`, `""`, `source_topic`, `is not a topic name`, 2}, {`"amends-demo-source"`, `".."`, `source_topic`, `is not a topic name`, 2},
		{`"amends-demo-source"`, `"a b"`, `source_topic`, `is not a topic name`, 2}, {`"amends-demo-source"`, `"` + strings.Repeat("x", 250) + `"`, `source_topic`, `is not a topic name`, 2},
		{`"schema_version": 1`, `"schema_version": 2`, `config.schema_version`, `2 is out of range; allowed: 1`, 4}, {`"schema_version": 1`, `"schema_version": "1"`, `config.schema_version`, `the string "1"; allowed: a whole number`, 4},
		{`"demo"`, `""`, `config.namespace`, `is not a namespace`, 5}, {`"demo"`, `"Demo"`, `config.namespace`, `is not a namespace`, 5}, {`"demo"`, `".demo"`, `config.namespace`, `is not a namespace`, 5}, {`"demo"`, `"dé"`, `config.namespace`, `is not a namespace`, 5},
		{`"demo"`, `"` + strings.Repeat("x", 65) + `"`, `config.namespace`, `is not a namespace`, 5}, {`"demo"`, `null`, `config.namespace`, `null; allowed: a string`, 5}, {`"demo"`, `"\ud800"`, `config.namespace`, `not valid JSON`, 5},
		{`"demo"`, "\"\xff\"", `config.namespace`, `not valid JSON`, 5},
		{`"kafka:00112233445566778899aabbccddeeff"`, `"kafka:00112233445566778899AABBCCDDEEFF"`, `config.source_incarnation`, `is not a topic incarnation`, 6}, {`"kafka:00112233445566778899aabbccddeeff"`, `"kafka:00"`, `config.source_incarnation`, `is not a topic incarnation`, 6},
		{`"2026-01-01"`, `"2026-02-29"`, `config.ledger_origin`, `is not a day`, 7}, {`"2026-01-01"`, `"0000-12-31"`, `config.ledger_origin`, `is not a day`, 7}, {`"2026-01-01"`, `20260101`, `config.ledger_origin`, `allowed: a string`, 7},
		{`"partitions": 2,`, `"partitions": 0,`, `config.partitions`, `0 is out of range; allowed: 1..1024`, 8}, {`"partitions": 2,`, `"partitions": 1025,`, `config.partitions`, `1025 is out of range; allowed: 1..1024`, 8},
		{`"partitions": 2,`, `"partitions": 2.0,`, `config.partitions`, `2.0; allowed: a whole number`, 8}, {`"partitions": 2,`, `"partitions": 4294967298,`, `config.partitions`, `out of range`, 8}, {`"quantity_scale": 0`, `"quantity_scale": 00`, `config`, `not valid JSON`, 9},
		{`"partitions": 2,`, `"partitions": 2e0,`, `config.partitions`, `2e0; allowed: a whole number`, 8}, {`"partitions": 2,`, `"partitions": true,`, `config.partitions`, `true; allowed: a whole number`, 8},
		{`"quantity_scale": 0`, `"quantity_scale": 10`, `config.quantity_scale`, `10 is out of range; allowed: 0..9`, 9}, {`"quantity_scale": 0`, `"quantity_scale": -1`, `config.quantity_scale`, `-1 is out of range`, 9}, {`"quantity_scale": 0`, `"quantity_scale": -0`, `config.quantity_scale`, `-0; allowed`, 9},
		{`"widget"`, `""`, `config.stock_keys[0].item`, `0 bytes; allowed: 1 to 512 bytes of UTF-8`, 11}, {`"widget"`, `"` + strings.Repeat("x", 513) + `"`, `config.stock_keys[0].item`, `513 bytes`, 11}, {`"berlin"`, `""`, `config.stock_keys[0].location`, `0 bytes`, 11},
		{`"berlin"`, `7`, `config.stock_keys[0].location`, `7; allowed: a string`, 11}, {`"partition": 0`, `"partition": 2`, `config.stock_keys[0].partition`, `2 is out of range; allowed: 0..1`, 11}, {`"partition": 0`, `"partition": -1`, `config.stock_keys[0].partition`, `-1 is out of range`, 11},
		{`"opening_balance": 0, "threshold": 60`, `"opening_balance": null, "threshold": 60`, `config.stock_keys[0].opening_balance`, `null; allowed: a whole number`, 11}, {`"threshold": 60`, `"threshold": 9223372036854775808`, `config.stock_keys[0].threshold`, `out of range`, 11},
		{`"threshold": 60`, `"threshold": "60"`, `config.stock_keys[0].threshold`, `allowed: a whole number or null`, 11}, {`, "threshold": 60`, ``, `config.stock_keys[0].threshold`, `missing`, 11}, {`"threshold": 60`, `"threshold": 60, "unit": "kg"`, `config.stock_keys[0]`, `unknown member "unit"`, 11},
		{`"threshold": 60}`, `"threshold": 60}, {"item": "widget", "location": "berlin", "partition": 1, "opening_balance": 1, "threshold": null}`, `config.stock_keys[1]`, `("widget", "berlin") is listed at [0] already; allowed: each key once`, 11},
		{`"threshold": 60}`, `"threshold": 60}, null`, `config.stock_keys[1]`, `null; allowed: a JSON object`, 11}, {`"stock_keys": [`, `"stock_keys": {`, `config.stock_keys`, `an object; allowed: a JSON array`, 10},
		{`{"opening_balance": 0, "threshold": null}`, `null`, `config.open_keys`, `null; allowed: a JSON object`, 13}, {`{"opening_balance": 0, "threshold": null}`, `{"opening_balance": 0}`, `config.open_keys.threshold`, `missing`, 13}, {`{"opening_balance": 0, "threshold": null}`, `{"threshold": null}`, `config.open_keys.opening_balance`, `missing`, 13},
		{`{"opening_balance": 0, "threshold": null}`, `{"opening_balance": 0, "threshold": null, "partition": 0}`, `config.open_keys`, `unknown member "partition"`, 13},
		{`{"topic": "amends-demo-output", "incarnation": "kafka:ffeeddccbbaa99887766554433221100", "partitions": 2}`, `null`, `output`, `null; allowed: a JSON object`, 15}, {`"amends-demo-output"`, `"/"`, `output.topic`, `is not a topic name`, 15},
		{`"amends-demo-output"`, `"amends-demo-source"`, `output.topic`, `it is the source topic`, 15}, {`ffeeddccbbaa99887766554433221100`, `00112233445566778899aabbccddeeff`, `output.incarnation`, `it is the source's incarnation`, 15},
		{`ffeeddccbbaa99887766554433221100`, `...`, `output.incarnation`, `is not a topic incarnation`, 15}, {`"partitions": 2}`, `"partitions": 3}`, `output.partitions`, `3 is not the number of the source; allowed: 2`, 15}, {`, "partitions": 2}`, `}`, `output.partitions`, `missing`, 15},
	} {
		text := strings.Replace(full, c.old, c.new, 1)
		if text == full {
			t.Fatalf("%s does not occur", c.old)
		}
		_, err := Parse([]byte(text))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%.60s → %.60s: %v, want an *Error", c.old, c.new, err)
			continue
		}
		if e.Member != c.member || !strings.Contains(e.Error(), c.text) || e.Line != c.line {
			t.Errorf("%.60s → %.60s: line %d, member %s: %v\nwant line %d, member %s, %s", c.old, c.new, e.Line, e.Member, e, c.line, c.member, c.text)
		}
	}
}

func TestParseConfigHasNoIncarnation(t *testing.T) {
	text := string(must(Default("demo", incarnation)).Canonical())
	_, err := ParseConfig([]byte(text), incarnation)
	if err == nil || !strings.Contains(err.Error(), `unknown member "source_incarnation"`) {
		t.Errorf("with source_incarnation: %v", err)
	}
	text = strings.Replace(text, `"source_incarnation":"`+incarnation+`",`, "", 1)
	got, err := ParseConfig([]byte(text), incarnation)
	if must(got, err).Digest() != must(Default("demo", incarnation)).Digest() {
		t.Errorf("%s", got.Canonical())
	}
	for _, bad := range []string{text + "x", strings.Replace(text, `"partitions":2`, `"partitions":2000`, 1), `[]`} {
		if _, err := ParseConfig([]byte(bad), incarnation); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	if _, err := ParseConfig([]byte(text), "kafka:"); err == nil || !strings.Contains(err.Error(), "config.source_incarnation") {
		t.Errorf("with a bad incarnation: %v", err)
	}
}

func TestNewRefusesAndLeavesItsArgument(t *testing.T) {
	keys := []StockKey{{Key: ledger.StockKey{Item: "b", Location: "x"}}, {Key: ledger.StockKey{Item: "a", Location: "x"}}}
	valid := Config{Namespace: "n", SourceIncarnation: incarnation, LedgerOrigin: 1, Partitions: 1, StockKeys: keys}
	c := must(New(valid))
	if keys[0].Key.Item != "b" || c.StockKeys[0].Key.Item != "a" {
		t.Errorf("keys %v, sorted %v", keys, c.StockKeys)
	}
	for member, change := range map[string]func(*Config){
		"config.ledger_origin":           func(c *Config) { c.LedgerOrigin = 0 },
		"config.partitions":              func(c *Config) { c.Partitions = -1 },
		"config.quantity_scale":          func(c *Config) { c.QuantityScale = 10 },
		"config.namespace":               func(c *Config) { c.Namespace = "N" },
		"config.source_incarnation":      func(c *Config) { c.SourceIncarnation = "" },
		"config.stock_keys[0].item":      func(c *Config) { c.StockKeys = []StockKey{{Key: ledger.StockKey{Item: "\xff", Location: "x"}}} },
		"config.stock_keys[0].partition": func(c *Config) { c.StockKeys = []StockKey{{Key: keys[0].Key, Partition: 1}} },
		"config.stock_keys[1]":           func(c *Config) { c.StockKeys = []StockKey{keys[0], keys[0]} },
	} {
		bad := valid
		change(&bad)
		got, err := New(bad)
		var e *Error
		if !errors.As(err, &e) || e.Member != member || got != nil {
			t.Errorf("%s: %v %v", member, got, err)
		}
	}
	if _, err := Default("Demo", incarnation); err == nil {
		t.Error("Default accepts a namespace that S2 does not allow")
	}
}

// SC29: each difference is named.
func TestDifferences(t *testing.T) {
	base := func() Config {
		return Config{Namespace: "n", SourceIncarnation: incarnation, LedgerOrigin: 1, Partitions: 2, StockKeys: []StockKey{
			{Key: ledger.StockKey{Item: "a", Location: "x"}, Terms: Terms{Threshold: ptr(60)}}, {Key: ledger.StockKey{Item: "b", Location: "x"}}}}
	}
	for want, change := range map[string]func(*Config){
		``:                             func(*Config) {},
		`namespace: stored n, given m`: func(c *Config) { c.Namespace = "m" },
		`source_incarnation: stored ` + incarnation + `, given ` + another:                  func(c *Config) { c.SourceIncarnation = another },
		`ledger_origin: stored 0001-01-01, given 0001-01-02`:                                func(c *Config) { c.LedgerOrigin = 2 },
		`partitions: stored 2, given 3`:                                                     func(c *Config) { c.Partitions = 3 },
		`quantity_scale: stored 0, given 1`:                                                 func(c *Config) { c.QuantityScale = 1 },
		`stock_keys ("a", "x") threshold: stored 60, given null`:                            func(c *Config) { c.StockKeys[0].Threshold = nil },
		`stock_keys ("a", "x") threshold: stored 60, given 61`:                              func(c *Config) { c.StockKeys[0].Threshold = ptr(61) },
		`stock_keys ("b", "x") opening_balance: stored 0, given -1`:                         func(c *Config) { c.StockKeys[1].OpeningBalance = -1 },
		`stock_keys ("b", "x") partition: stored 0, given 1`:                                func(c *Config) { c.StockKeys[1].Partition = 1 },
		`stock_keys ("b", "x"): stored, not given`:                                          func(c *Config) { c.StockKeys = c.StockKeys[:1] },
		`stock_keys ("a", "x"): stored, not given|stock_keys ("c", "x"): given, not stored`: func(c *Config) { c.StockKeys[0] = StockKey{Key: ledger.StockKey{Item: "c", Location: "x"}} },
		`open_keys: given, not stored`:                                                      func(c *Config) { c.OpenKeys = &Terms{} },
	} {
		given := base()
		change(&given)
		a, b := must(New(base())), must(New(given))
		if got := strings.Join(Differences(a, b), "|"); got != want || (a.Digest() == b.Digest()) != (want == "") {
			t.Errorf("%s, want %s", got, want)
		}
	}
	open, other := base(), base()
	open.OpenKeys, other.OpenKeys = &Terms{OpeningBalance: 1}, &Terms{OpeningBalance: 2, Threshold: ptr(0)}
	got := Differences(must(New(open)), must(New(other)))
	if d := cmp.Diff([]string{"open_keys opening_balance: stored 1, given 2", "open_keys threshold: stored null, given 0"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if got := Differences(must(New(open)), must(New(base()))); len(got) != 1 || got[0] != "open_keys: stored, not given" {
		t.Errorf("%q", got)
	}
}

func TestVectorsConfigurationsParse(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(absent.Vectors(t), "*", "config.json"))
	if err != nil || len(files) < 14 {
		t.Fatalf("%d configurations (%v)", len(files), err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseConfig(b, incarnation); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add((&Manifest{SourceTopic: "s", Config: must(Default("demo", incarnation))}).Append(nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Line < 1 || m != nil {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		written := m.Append(nil)
		again, err := Parse(written)
		if err != nil || again.Config.Digest() != m.Config.Digest() || string(again.Append(nil)) != string(written) {
			t.Fatalf("%q is written as %q: %v", text, written, err)
		}
	})
}
