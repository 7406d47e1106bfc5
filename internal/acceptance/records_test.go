package acceptance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/kafkatest"
	"amends/internal/pace"
	"amends/internal/programtest"
)

// Rejection codes as the database numbers them (migrations/0001_processing.sql).
const (
	tooLarge = 1 + iota
	malformed
	unsupportedSchema
	invalidValue
	outOfHorizon
	unknownKey
	keyMismatch
	routing
)

// fault is a record that is rejected, and the code by hand.
type fault struct {
	why string
	raw
	code int
}

// faults are records of the widget's key on partition 0, each wrong in one way, or in two of which the earlier counts.
func faults() []fault {
	good := widget("X", 1, "receipt", 1, 1)
	on := func(why string, code int, value string) fault {
		return fault{why, raw{key: []byte(widgetKey), value: []byte(value)}, code}
	}
	with := func(why string, code int, pairs ...string) fault {
		return on(why, code, strings.NewReplacer(pairs...).Replace(good))
	}
	all := []fault{
		on("value of 65,537 bytes", tooLarge, good+strings.Repeat(" ", 65_537-len(good))),
		{"key of 8,193 bytes", raw{key: []byte(widgetKey + strings.Repeat(" ", 8_193-len(widgetKey))), value: []byte(good)}, tooLarge},
		{"value absent", raw{key: []byte(widgetKey)}, malformed},
		on("value empty", malformed, ""),
		on("not UTF-8", malformed, strings.Replace(good, `"X"`, "\"\xff\"", 1)),
		on("byte order mark", malformed, "\ufeff"+good),
		on("trailing data", malformed, good+"{}"),
		with("a name twice", malformed, `"schema":1`, `"schema":1,"schema":1`),
		with("a name twice after unescaping", malformed, `"schema":1`, `"schema":1,"\u0073chema":1`),
		with("an unpaired surrogate", malformed, `"X"`, `"\ud800"`),
		on("schema missing", malformed, `{}`),
		with("schema of another form", malformed, `"schema":1`, `"schema":1.0`),
		with("another schema", unsupportedSchema, `"schema":1`, `"schema":2,"also":null`),
		with("a schema of 40 digits", unsupportedSchema, `"schema":1`, `"schema":`+strings.Repeat("9", 40)),
		with("an unknown member", malformed, `"schema":1`, `"schema":1,"note":"x"`),
		with("an alias by case", malformed, `"item"`, `"Item"`),
		with("a fraction", malformed, `"quantity":1`, `"quantity":1.0`),
		with("null", malformed, `"quantity":1`, `"quantity":null`),
		with("quantity 0", invalidValue, `"quantity":1`, `"quantity":0`),
		with("C35", invalidValue, `"quantity":1`, `"quantity":327267367867168100000`),
		with("no such day", invalidValue, `2026-01-01`, `2026-02-30`),
		with("another kind", invalidValue, `"receipt"`, `"gift"`),
		with("before the origin", outOfHorizon, `2026-01-01`, `2025-12-31`),
		with("36,525 days after it", outOfHorizon, `2026-01-01`, `2126-01-02`),
		with("an unknown key", unknownKey, `"widget"`, `"nobody"`),
		{"key absent", raw{value: []byte(good)}, keyMismatch},
		{"another key", raw{key: []byte(gadgetKey), value: []byte(good)}, keyMismatch},
		{"wrong partition", raw{key: []byte(widgetKey), value: []byte(good), partition: 1}, routing},
		with("unknown key and quantity 0", invalidValue, `"widget"`, `"nobody"`, `"quantity":1`, `"quantity":0`),
		with("unknown key before the origin", outOfHorizon, `"widget"`, `"nobody"`, `2026-01-01`, `2025-12-31`),
	}
	return append(all, bombs(good)...)
}

// bombs would crash a careless decoder or fold (C31).
func bombs(good string) []fault {
	on := func(why string, code int, key, value string) fault {
		return fault{why, raw{key: []byte(key), value: []byte(value)}, code}
	}
	deep := `{"schema":1,"a":` + strings.Repeat(`{"a":`, 9_000) + "1" + strings.Repeat("}", 9_001)
	return []fault{
		on("C31 65,536 open brackets", malformed, widgetKey, strings.Repeat("[", 65_536)),
		on("C31 nesting of 9,000", malformed, widgetKey, deep),
		on("C31 60,000 digits", invalidValue, widgetKey, strings.Replace(good, `"quantity":1`, `"quantity":`+strings.Repeat("7", 60_000), 1)),
		on("C31 exponent", malformed, widgetKey, strings.Replace(good, `"quantity":1`, `"quantity":1e999999999`, 1)),
		on("C31 zero bytes", malformed, widgetKey, strings.Repeat("\x00", 1_000)),
		on("C31 key of open brackets", keyMismatch, strings.Repeat("[", 8_192), good),
		on("C31 txn_id of 513 bytes", invalidValue, widgetKey, strings.Replace(good, `"X"`, `"`+strings.Repeat("x", 513)+`"`, 1)),
	}
}

// Each rejection code ends in quarantine with exact bytes, lengths and coordinates, and the next record is processed; nothing
// that a hostile source sends ends the role (SC15, C31, C35).
// Shows F15, I15.
func TestSC15C31C35EveryRejectionInQuarantine(t *testing.T) {
	t.Parallel()
	s := newSpace(t, twoKeys)
	role := s.roles()
	var records []raw
	var want []string
	at := [2]int{}
	for i, f := range faults() {
		want = append(want, quarantineRow(f, at[f.partition]))
		at[f.partition]++
		records = append(records, f.raw, raw{key: []byte(widgetKey), value: []byte(widget(fmt.Sprint("T-", i), 1, "receipt", 1, 1))})
		at[0]++
	}
	s.loadRaw(records...)
	if v := s.verify(0); v.Rejected != int64(len(want)) || v.SourceRecords != int64(2*len(want)) {
		t.Errorf("%+v", v)
	}
	got := s.query(`SELECT partition, source_offset, rejection, key_length, value_length, encode(sha256(coalesce(key, 'absent')), 'hex') AS k,
		encode(sha256(coalesce(value, 'absent')), 'hex') AS v, encode(key_sha256, 'hex') AS ks, encode(value_sha256, 'hex') AS vs FROM amends.quarantine`)
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("quarantine (-by hand +database):\n%s", d)
	}
	if got := s.one("SELECT close, version FROM amends.view_rows WHERE kind = 1"); got != fmt.Sprintf("%d|%d", len(want), len(want)) {
		t.Errorf("close and version after %d valid records: %s", len(want), got)
	}
	role.Stop(programtest.Deadline)
}

// quarantineRow is the row of a rejected record: all bytes, or where it was too large the first ones with the whole length
// and sum.
func quarantineRow(f fault, offset int) string {
	sum := func(b []byte, limit int, absent string) string {
		if b == nil {
			b = []byte(absent)
		}
		h := sha256.Sum256(b[:min(len(b), limit)])
		return hex.EncodeToString(h[:])
	}
	const everything = 1 << 30
	return fmt.Sprintf("%d|%d|%d|%d|%d|%s|%s|%s|%s", f.partition, offset, f.code, len(f.key), len(f.value),
		sum(f.key, 8_192, "absent"), sum(f.value, 65_536, "absent"), sum(f.key, everything, ""), sum(f.value, everything, ""))
}

// identifier is a string and how RFC 8785 writes it inside quotes.
type identifier struct{ raw, json string }

func identifiers() []identifier {
	same := func(s string) identifier { return identifier{s, s} }
	return []identifier{
		{"a\x00b", `a\u0000b`},
		{`q"uo\te'`, `q\"uo\\te'`},
		{"\b\t\n\f\r\x1f\x7f", `\b\t\n\f\r\u001f` + "\x7f"},
		same("<script>alert('1')</script>&amp;"),
		same("\u202eltr\u200f\u2066"),
		same("😀👩‍👩‍👧"),
		same(strings.Repeat("€", 170) + "ab"), // 512 bytes
		{strings.Repeat("\x01", 512), strings.Repeat(`\u0001`, 512)},
		same("caf\u00e9"), same("cafe\u0301"),
		same("85123A"), same("85123a"),
		same("\u2028\u2029\ufeff\uffff"),
		same(" lead and trail "), same("null"), same("-"),
	}
}

// Identifiers with NUL, quotes, HTML, right-to-left marks, emoji and 512 bytes, spellings that look alike: distinct keys,
// and equal bytes from the source record to the topic, the view and its JSON (SC37, C40). The keys are placed by Kafka's own
// default partitioner over the canonical key (S2).
func TestSC37C40IdentifiersKeepTheirBytes(t *testing.T) {
	t.Parallel()
	s := newSpace(t, openKeys)
	s.roles()
	producer, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	var want [2][]string
	var wantKeys [2][]string
	for _, id := range identifiers() {
		key := fmt.Sprintf(`{"item":"%s","location":"%s"}`, id.json, id.json)
		r := &kgo.Record{Topic: s.source, Key: []byte(key), Value: fmt.Appendf(nil, `{"schema":1,"txn_id":"%s","revision":1,"state":"active","item":"%s","location":"%s","day":"2026-01-01","kind":"receipt","quantity":7}`, id.json, id.json, id.json)}
		if err := producer.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		p, sequence := r.Partition, len(want[r.Partition])
		tail := fmt.Sprintf(`"cause":{"partition":%d,"offset":%d,"txn_id":"%s","revision":1},"repair":{"index":%%d,"count":2}}`, p, sequence/2, id.json)
		head := `{"schema":1,"namespace":"` + s.name + `","sequence":%d,"output":["%s","%s","%s"%s],"version":1,"present":true,"payload":%s,%s`
		want[p] = append(want[p], fmt.Sprintf(head, sequence, "balance", id.json, id.json, `,"2026-01-01"`, `{"close":7}`, strings.Replace(tail, "%d", "0", 1)),
			fmt.Sprintf(head, sequence+1, "status", id.json, id.json, "", `{"status":"READY","reasons":[],"more":0}`, strings.Replace(tail, "%d", "1", 1)))
		wantKeys[p] = append(wantKeys[p], key, key)
	}
	s.verify(0)
	shown := s.run("amendsctl view-show -manifest pipeline.json -o json")
	for p := range want {
		var keys []string
		for _, r := range s.consume(s.output, int32(p)) {
			keys = append(keys, string(r.Key))
		}
		if d := cmp.Diff(want[p], s.published(int32(p))); d != "" {
			t.Errorf("partition %d (-by hand +topic):\n%s", p, d)
		}
		if d := cmp.Diff(wantKeys[p], keys); d != "" {
			t.Errorf("keys of partition %d (-by hand +topic):\n%s", p, d)
		}
		for _, e := range want[p] {
			if !strings.Contains(shown, e) {
				t.Errorf("view-show -o json lacks %s", e)
			}
		}
	}
	var hexes []string
	for _, id := range identifiers() {
		h := hex.EncodeToString([]byte(id.raw))
		hexes = append(hexes, h+"|"+h+"|"+h)
	}
	slices.Sort(hexes)
	for _, sql := range []string{
		"SELECT encode(item, 'hex') AS a, encode(location, 'hex') AS b, encode(txn_id, 'hex') AS c FROM amends.keys JOIN amends.journal USING (namespace_id, partition, key_id)",
		"SELECT encode(item, 'hex') AS a, encode(location, 'hex') AS b, encode(cause_txn_id, 'hex') AS c FROM amends.view_keys JOIN amends.view_rows USING (namespace_id, partition, key_id) WHERE kind = 1",
	} {
		got := s.query(sql)
		slices.Sort(got)
		if d := cmp.Diff(hexes, got); d != "" {
			t.Errorf("%s:\n%s", sql, d)
		}
	}
	if text := s.run("amendsctl view-show -manifest pipeline.json"); strings.ContainsAny(text, "\x00\x01\b\f\r\x1f\x7f\u202e\u200f\u2066\u2028\u2029\ufeff") {
		t.Errorf("a terminal is deceived by:\n%q", text)
	}
}

// Timestamps that go backwards decide nothing: the order is that of offsets (C32).
// Shows F16.
func TestC32TimestampsGoBackwards(t *testing.T) {
	t.Parallel()
	s := newSpace(t, "")
	s.roles()
	before, correction, last := example("widget", "berlin")
	for i, value := range append(append(before, correction...), last...) {
		s.send(s.source, 0, &kgo.Record{Key: []byte(widgetKey), Value: []byte(value), Timestamp: time.UnixMilli(1_767_225_600_000 - int64(i)*86_400_000)})
	}
	s.verify(0)
	if d := cmp.Diff(golden(t, s.name, "widget", "berlin", 0), s.published(0)); d != "" {
		t.Errorf("published (-by hand +topic):\n%s", d)
	}
	checkWorkedExample(s)
}

// A source that ends in a transaction's marker, with aborted records before it: they are never counted, and verification
// completes at the coordinate after the marker (C34).
func TestC34SourceEndsInATransactionMarker(t *testing.T) {
	t.Parallel()
	s := newSpace(t, "")
	s.roles()
	s.load(widget("T-1", 1, "receipt", 100, 1)) // offset 0
	producer, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionalID(s.source))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	transaction := func(end kgo.TransactionEndTry, value string) {
		t.Helper()
		if err := producer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Topic: s.source, Key: []byte(widgetKey), Value: []byte(value)}
		if err := producer.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := producer.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
		kafkatest.AwaitMarkers(t, s.brokers, s.source)
	}
	transaction(kgo.TryCommit, widget("T-2", 1, "issue", 20, 2)) // 1, marker 2
	if v := s.verify(0); v.Boundary[0].SourceEnd != 3 || v.SourceRecords != 2 {
		t.Errorf("after a commit: %+v", v)
	}
	transaction(kgo.TryAbort, widget("T-3", 1, "issue", 30, 3)) // 3, marker 4
	if v := s.verify(0); v.Boundary[0].SourceEnd != 5 || v.SourceRecords != 2 || v.Boundary[0].OutputEnd != 3 {
		t.Errorf("after an abort: %+v", v)
	}
	if got := s.query("SELECT source_offset FROM amends.journal ORDER BY 1"); !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("decided: %v", got)
	}
	transaction(kgo.TryCommit, widget("T-3", 1, "issue", 30, 3)) // 5, marker 6
	if v := s.verify(0); v.Boundary[0].SourceEnd != 7 || v.SourceRecords != 3 {
		t.Errorf("after the end: %+v", v)
	}
}

// A correction on day 1 of 3,650 through the whole path: 3,650 new versions in one decision, visible together (SC33).
func TestSC33DeepCorrectionOnTheWholePath(t *testing.T) {
	t.Parallel()
	const days = 3_650
	s := newSpace(t, openKeys)
	s.roles()
	var values []string
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range days {
		values = append(values, active("deep", "x", fmt.Sprint("T-", i), 1, "receipt", 2, first.AddDate(0, 0, i).Format(time.DateOnly)))
	}
	s.load(append(values, active("deep", "x", "T-0", 2, "receipt", 3, "2026-01-01"))...)
	s.verify(0)
	if got := s.query("SELECT source_offset, outputs FROM amends.journal WHERE revision = 2"); !slices.Equal(got, []string{fmt.Sprintf("%d|%d", days, days)}) {
		t.Errorf("the correction: %v", got)
	}
	got := s.one("SELECT count(*), count(*) FILTER (WHERE version = 2 AND close = 2 * (day - DATE '2026-01-01') + 3 AND repair_index = day - DATE '2026-01-01' AND repair_count = $1) FROM amends.view_rows WHERE kind = 1", days)
	if got != fmt.Sprintf("%d|%d", days, days) {
		t.Errorf("rows, and rows as derived: %s", got)
	}
}

// 100,000 invalid records between valid ones are all quarantined; how fast is reported beside as many valid ones (SC34).
// Shows F15, I22.
func TestSC34ManyInvalidRecords(t *testing.T) {
	t.Parallel()
	n := pace.Of(100_000)
	timed := func(make func(i int) *kgo.Record) (s *space, seconds float64) {
		s = newSpace(t, openKeys)
		records := []*kgo.Record{{Key: []byte(widgetKey), Value: []byte(widget("first", 1, "receipt", 1, 1))}}
		for i := range n {
			records = append(records, make(i))
		}
		records = append(records, &kgo.Record{Key: []byte(widgetKey), Value: []byte(widget("last", 1, "receipt", 1, 1))})
		s.send(s.source, widgetPartition, records...)
		began := time.Now()
		role := s.Start("amends -role source -manifest pipeline.json")
		s.frontier(widgetPartition, int64(n+2))
		took := time.Since(began)
		role.Stop(programtest.Deadline)
		seconds, err := strconv.ParseFloat(s.one("SELECT extract(epoch FROM max(committed_at) - min(committed_at)) FROM amends.journal"), 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d records: %v from the start of the role, %.2f s from the first commit", len(records), took.Round(time.Millisecond), seconds)
		return s, seconds
	}
	_, valid := timed(func(i int) *kgo.Record {
		return &kgo.Record{Key: []byte(widgetKey), Value: fmt.Appendf(nil, `{"schema":1,"txn_id":"T-%d","revision":1,"state":"active","item":"widget","location":"berlin","day":"2026-01-%02d","kind":"receipt","quantity":1}`, i, min(i*28/n+1, 28))}
	})
	s, invalid := timed(func(i int) *kgo.Record {
		return &kgo.Record{Key: []byte(widgetKey), Value: fmt.Appendf(nil, `{"schema":1,"txn_id":"T-%d","revision":0}`, i)}
	})
	t.Logf("invalid records take %.2f times as long as valid ones", invalid/valid)
	got := s.one("SELECT count(*), count(DISTINCT value), min(source_offset), max(source_offset), min(rejection), max(rejection) FROM amends.quarantine")
	if want := fmt.Sprintf("%d|%d|1|%d|2|2", n, n, n); got != want {
		t.Errorf("quarantined %s, want %s", got, want)
	}
	wrong := s.one(`SELECT count(*) FROM amends.quarantine WHERE convert_from(value, 'UTF8') <> '{"schema":1,"txn_id":"T-' || source_offset - 1 || '","revision":0}'`)
	if wrong != "0" {
		t.Errorf("%s values are not as they were sent", wrong)
	}
	s.Start("amends run -manifest pipeline.json -role relay,view")
	s.Start("amends -role source -manifest pipeline.json")
	if v := s.verify(0); v.Rejected != int64(n) || v.SourceRecords != int64(n+2) || v.Outputs != 2 {
		t.Errorf("%+v", v)
	}
}

// widgetPartition is where Kafka's default partitioner puts the widget's canonical key among two partitions.
const widgetPartition = 0

// A source file with a bad line is refused before anything is published; the line and the column are named.
func TestBadSourceFileIsRefusedBeforeAnythingIsPublished(t *testing.T) {
	t.Parallel()
	s := newUnbound(t, "")
	good := widget("T-1", 1, "receipt", 100, 1)
	for name, c := range map[string]struct{ line, place, why string }{
		"no JSON":           {"nonsense", "line 2 column 1", "MALFORMED"},
		"empty line":        {"", "line 2 column 1", "MALFORMED"},
		"unknown key":       {strings.Replace(good, "widget", "gadget", 1), "line 2 column 1", "UNKNOWN_KEY"},
		"before the origin": {strings.Replace(good, "2026-01-01", "2025-12-31", 1), "line 2 column", "OUT_OF_HORIZON"},
		"quantity 0":        {strings.Replace(good, `"quantity":100`, `"quantity":0`, 1), fmt.Sprintf("line 2 column %d", strings.Index(good, `100}`)+1), "INVALID_VALUE"},
	} {
		s.Write("bad.jsonl", good+"\n"+c.line+"\n"+good+"\n")
		a := s.Must(2, "", "amendsctl source-load -manifest source.json -file bad.jsonl")
		if !strings.Contains(a.Stderr, c.place) || !strings.Contains(a.Stderr, c.why) || a.Stdout != "" {
			t.Errorf("%s: %s%s", name, a.Stdout, a.Stderr)
		}
	}
	s.Write("bad.raw", `{"partition":0,"key":null}`+"\n")
	a := s.Must(2, "", "amendsctl source-load -manifest source.json -format raw -file bad.raw")
	if !strings.Contains(a.Stderr, "line 1") {
		t.Errorf("raw: %s", a.Stderr)
	}
	for p := range int32(2) {
		if got := s.consume(s.source, p); len(got) != 0 {
			t.Errorf("%d records were published on partition %d", len(got), p)
		}
	}
	if !strings.Contains(s.load(good), "0 0 T-1 1") {
		t.Error("the good line alone was not published")
	}
}
