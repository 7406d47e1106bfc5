package wire

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/manifest"
)

func workedConfig(t testing.TB) *manifest.Config {
	t.Helper()
	cfg, err := manifest.Default("demo", testIncarnation)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func jan(day int) ledger.Day {
	d, _ := ledger.DateOf(2026, 1, day)
	return d
}

// workedDecisions are the five decisions of the worked example, after the table of the contract.
func workedDecisions() []ledger.Decision {
	key := ledger.StockKey{Item: "widget", Location: "berlin"}
	cause := func(txn string, revision ledger.Revision) ledger.Assertion {
		return ledger.Assertion{Key: key, TxnID: txn, Revision: revision}
	}
	balance := func(day int, version ledger.Version, close int64) ledger.Change {
		return ledger.Change{Kind: ledger.Balance, Day: jan(day), Version: version, Present: true, Close: close}
	}
	alert := func(day int, version ledger.Version, previous, close int64) ledger.Change {
		return ledger.Change{Kind: ledger.Alert, Day: jan(day), Version: version, Present: true, Previous: previous, Close: close}
	}
	return []ledger.Decision{
		{Offset: 0, Sequence: 0, Assertion: cause("T-1", 1), Changes: []ledger.Change{
			balance(1, 1, 100), {Kind: ledger.TrustStatus, Version: 1, Present: true, Status: &ledger.Status{}}}},
		{Offset: 1, Sequence: 2, Assertion: cause("T-2", 1), Changes: []ledger.Change{balance(2, 1, 80)}},
		{Offset: 2, Sequence: 3, Assertion: cause("T-3", 1), Changes: []ledger.Change{balance(3, 1, 50), alert(3, 1, 80, 50)}},
		{Offset: 3, Sequence: 5, Assertion: cause("T-1", 2), Changes: []ledger.Change{
			balance(1, 2, 70), balance(2, 2, 50), alert(2, 1, 70, 50), balance(3, 2, 20), {Kind: ledger.Alert, Day: jan(3), Version: 2}}},
		{Offset: 4, Sequence: 10, Assertion: cause("T-3", 2), Changes: []ledger.Change{{Kind: ledger.Balance, Day: jan(3), Version: 3}}},
	}
}

// SC01 SC02 SC03: the worked example's eleven envelopes, byte for byte as written by hand in testdata.
func TestWorkedExampleEnvelopes(t *testing.T) {
	want := lines(readFile(t, "testdata", "worked-example.jsonl"))
	enc := NewEncoder(workedConfig(t), 0)
	var got []string
	for _, d := range workedDecisions() {
		for i := range d.Changes {
			got = append(got, string(enc.Append(nil, &d, i)))
		}
		if key := string(enc.Key(nil, &d)); key != `{"item":"widget","location":"berlin"}` {
			t.Errorf("key %s", key)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("encoder (-want +got)\n%s", d)
	}
	if len(want) != 11 {
		t.Fatalf("%d golden envelopes, want 11", len(want))
	}
	for _, text := range want {
		e, err := DecodeEnvelope([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if again := string(AppendEnvelope(nil, &e)); again != text {
			t.Errorf("AppendEnvelope (-want +got)\n%s", cmp.Diff(text, again))
		}
	}
}

func TestEnvelopeDecodesToItsMembers(t *testing.T) {
	got, err := DecodeEnvelope([]byte(lines(readFile(t, "testdata", "worked-example.jsonl"))[4]))
	want := Envelope{
		Namespace: "demo", Sequence: 4, Version: 1, Present: true, Previous: 80, Close: 50, Threshold: 60,
		Output: ledger.OutputID{Key: ledger.StockKey{Item: "widget", Location: "berlin"}, Day: jan(3), Kind: ledger.Alert},
		Cause:  Cause{Partition: 0, Offset: 2, TxnID: "T-3", Revision: 1}, Index: 1, Count: 2,
	}
	if err != nil || got != want {
		t.Errorf("decoded %+v %v, want %+v", got, err, want)
	}
}

// A blocked status with every reason that can stand together, and identifiers that need escapes (SC37).
func TestBlockedEnvelope(t *testing.T) {
	const text = `{"schema":1,"namespace":"n.1_a-b","sequence":9223372036854775807,"output":["status","a\u0000\"\\/<b>","é\u001f` + "\u2028\u202e😀" +
		`"],"version":9223372036854775807,"present":true,"payload":{"status":"BLOCKED","reasons":[{"code":"AMBIGUOUS","txn_id":"\b\t\n\f\r","revision":1},` +
		`{"code":"AMBIGUOUS","txn_id":"T","revision":9223372036854775807},{"code":"COUNTS_DISAGREE","day":"0001-01-01"}],"more":0},` +
		`"cause":{"partition":1023,"offset":9223372036854775807,"txn_id":"` + "\u007f" + `","revision":2},"repair":{"index":73050,"count":73051}}`
	want := Envelope{
		Namespace: "n.1_a-b", Sequence: math.MaxInt64, Version: math.MaxInt64, Present: true, Index: 73050, Count: 73051,
		Output: ledger.OutputID{Key: ledger.StockKey{Item: "a\x00\"\\/<b>", Location: "é\x1f\u2028\u202e😀"}, Kind: ledger.TrustStatus},
		Cause:  Cause{Partition: 1023, Offset: math.MaxInt64, TxnID: "\x7f", Revision: 2},
		Status: &ledger.Status{Blocked: true, Reasons: []ledger.Reason{
			{Code: ledger.Ambiguous, TxnID: "\b\t\n\f\r", Revision: 1},
			{Code: ledger.Ambiguous, TxnID: "T", Revision: math.MaxInt64},
			{Code: ledger.CountsDisagree, Day: ledger.MinDay},
		}},
	}
	got, err := DecodeEnvelope([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("decoded (-want +got)\n%s", d)
	}
	if again := string(AppendEnvelope(nil, &want)); again != text {
		t.Errorf("encoded (-want +got)\n%s", cmp.Diff(text, again))
	}
}

func TestCloseReachesBothEndsOfInt64(t *testing.T) {
	for _, n := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
		e := Envelope{Namespace: "n", Version: 1, Present: true, Close: n, Previous: n, Threshold: n, Count: 1,
			Output: ledger.OutputID{Key: ledger.StockKey{Item: "a", Location: "b"}, Day: ledger.MaxDay, Kind: ledger.Alert},
			Cause:  Cause{TxnID: "t", Revision: 1}}
		got, err := DecodeEnvelope(AppendEnvelope(nil, &e))
		if err != nil || got != e {
			t.Errorf("%d reads back as %+v %v", n, got, err)
		}
	}
}

// Everything that is not the canonical encoding of a valid envelope is refused, with the place.
func TestEnvelopeRefusals(t *testing.T) {
	balance := lines(readFile(t, "testdata", "worked-example.jsonl"))[3]
	alert := lines(readFile(t, "testdata", "worked-example.jsonl"))[4]
	ready := lines(readFile(t, "testdata", "worked-example.jsonl"))[1]
	blocked := strings.Replace(ready, `"READY","reasons":[]`, `"BLOCKED","reasons":[{"code":"UNREPRESENTABLE","day":"2026-01-01"}]`, 1)
	two := strings.Replace(ready, `"READY","reasons":[]`,
		`"BLOCKED","reasons":[{"code":"AMBIGUOUS","txn_id":"a","revision":1},{"code":"AMBIGUOUS","txn_id":"b","revision":1}]`, 1)
	sixteen := strings.Replace(ready, `"READY","reasons":[],"more":0`, `"BLOCKED","reasons":[`+ambiguous(16)+`],"more":9223372036854775807`, 1)
	for _, valid := range []string{balance, alert, ready, blocked, two, sixteen} {
		if _, err := DecodeEnvelope([]byte(valid)); err != nil {
			t.Fatalf("%s: %v", valid, err)
		}
	}
	for _, c := range []struct{ from, old, new string }{
		{balance, `{"schema":1,`, `{"schema":2,`}, {balance, `{"schema"`, ` {"schema"`}, {balance, `{"schema"`, "\ufeff" + `{"schema"`},
		{balance, `}}`, `}} `}, {balance, `}}`, `}`}, {balance, `}}`, `}}{}`}, {balance, `"demo"`, `"Demo"`}, {balance, `"demo"`, `""`},
		{balance, `"sequence":3`, `"sequence":-1`}, {balance, `"sequence":3`, `"sequence":03`}, {balance, `"sequence":3`, `"sequence":3.0`},
		{balance, `"sequence":3`, `"sequence":9223372036854775808`}, {balance, `"sequence":3`, `"sequence":`}, {balance, `"sequence":3`, `"sequence":"3"`},
		{balance, `"sequence":3`, `"sequence": 3`}, {balance, `["balance"`, `["Balance"`}, {balance, `["balance"`, `["alert"`},
		{balance, `["balance"`, `["status"`}, {ready, `["status"`, `["balance"`}, {balance, `"widget"`, `""`}, {balance, `"widget"`, `"w\u0069dget"`},
		{balance, `"widget"`, `"w\/dget"`}, {balance, `"widget"`, `"\u001F"`}, {balance, `"widget"`, `"\u000a"`}, {balance, `"widget"`, "\"\x01\""},
		{balance, `"widget"`, "\"\xff\""}, {balance, `"widget"`, `"\ud800"`}, {balance, `"widget"`, `"\q"`}, {balance, `"widget"`, `"` + strings.Repeat("x", 513) + `"`},
		{balance, `"2026-01-03"`, `"2026-02-30"`}, {balance, `"2026-01-03"`, `"0000-01-01"`}, {balance, `,"2026-01-03"`, ``}, {balance, `"version":1`, `"version":0`},
		{balance, `"present":true`, `"present":false`}, {balance, `{"close":50}`, `null`}, {balance, `{"close":50}`, `{}`}, {balance, `{"close":50}`, `{"close":-0}`},
		{balance, `{"close":50}`, `{"close":5e1}`}, {balance, `{"close":50}`, `{"close":-9223372036854775809}`}, {balance, `{"close":50}`, `{"close":null}`},
		{balance, `{"close":50}`, `{"close":50,"close":50}`}, {balance, `{"close":50}`, `{"close":99999999999999999999}`},
		{alert, `"previous":80,"close":50`, `"close":50,"previous":80`}, {alert, `,"threshold":60`, ``},
		{balance, `"partition":0`, `"partition":1024`}, {balance, `"partition":0`, `"partition":-1`}, {balance, `"offset":2`, `"offset":-2`},
		{balance, `"T-3"`, `""`}, {balance, `"revision":1`, `"revision":0`}, {balance, `"index":0`, `"index":2`}, {balance, `"index":0`, `"index":-1`},
		{balance, `"count":2`, `"count":0`}, {balance, `"count":2`, `"count":73052`}, {ready, `"more":0`, `"more":1`}, {ready, `"READY"`, `"BLOCKED"`},
		{blocked, `"BLOCKED"`, `"READY"`}, {blocked, `"more":0`, `"more":1`}, {blocked, `"more":0`, `"more":-1`}, {blocked, `UNREPRESENTABLE`, `OTHER`},
		{blocked, `"day":"2026-01-01"`, `"day":"2026-01-32"`}, {two, `"b"`, `"a"`}, {two, `"b"`, `"Z"`}, {two, `"b","revision":1`, `"b","revision":0`},
		{two, `},{"code":"AMBIGUOUS","txn_id":"b","revision":1}`, `},{"code":"UNREPRESENTABLE","day":"2026-01-01"}`}, {two, `},{`, `} ,{`}, {two, `},{`, `}{`},
		{blocked, `"}]`, `"},{"code":"COUNTS_DISAGREE","day":"2026-01-01"}]`}, {two, `}]`, `},]`}, {sixteen, `],"more"`, `,{"code":"AMBIGUOUS","txn_id":"z","revision":1}],"more"`},
	} {
		bad := strings.Replace(c.from, c.old, c.new, 1)
		if bad == c.from {
			t.Fatalf("%s does not occur", c.old)
		}
		_, err := DecodeEnvelope([]byte(bad))
		var p *Problem
		if !errors.As(err, &p) || p.Column < 1 || p.Column > len(bad)+1 || p.Reason == "" {
			t.Errorf("%s for %s: %v", c.new, c.old, err)
		}
	}
	for i := range balance {
		if _, err := DecodeEnvelope([]byte(balance[:i])); err == nil {
			t.Errorf("the first %d bytes were accepted", i)
		}
	}
}

// ambiguous returns n reasons in order.
func ambiguous(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = `{"code":"AMBIGUOUS","txn_id":"` + string(rune('a'+i)) + `","revision":1}`
	}
	return strings.Join(all, ",")
}

func TestEnvelopeDigestIsFirstEightBytes(t *testing.T) {
	sum := sha256.Sum256([]byte("x"))
	if got, want := EnvelopeDigest([]byte("x")), int64(binary.BigEndian.Uint64(sum[:])); got != want {
		t.Errorf("%x, want %x", got, want)
	}
}

// The encoder keeps pieces between decisions: each change of one of them must show.
func TestEncoderFollowsItsDecisions(t *testing.T) {
	low, high := int64(5), int64(6)
	keys := []ledger.StockKey{{Item: "a", Location: "x"}, {Item: "b", Location: "x"}}
	cfg, err := manifest.New(manifest.Config{Namespace: "n", SourceIncarnation: testIncarnation, LedgerOrigin: 1, Partitions: 4, StockKeys: []manifest.StockKey{
		{Key: keys[0], Partition: 3, Terms: manifest.Terms{Threshold: &low}}, {Key: keys[1], Partition: 3, Terms: manifest.Terms{Threshold: &high}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	enc := NewEncoder(cfg, 3)
	for _, d := range []ledger.Decision{
		{Offset: 1, Assertion: ledger.Assertion{Key: keys[0], TxnID: "t", Revision: 1}},
		{Offset: 1, Assertion: ledger.Assertion{Key: keys[0], TxnID: "u", Revision: 1}},
		{Offset: 1, Assertion: ledger.Assertion{Key: keys[0], TxnID: "u", Revision: 2}},
		{Offset: 2, Assertion: ledger.Assertion{Key: keys[0], TxnID: "u", Revision: 2}},
		{Offset: 2, Assertion: ledger.Assertion{Key: keys[1], TxnID: "u", Revision: 2}},
	} {
		d.Sequence = 40
		d.Changes = []ledger.Change{{Kind: ledger.Alert, Day: 1, Version: 1, Present: true, Previous: 9, Close: 2}}
		want := Envelope{Namespace: "n", Sequence: 40, Output: ledger.OutputID{Key: d.Assertion.Key, Day: 1, Kind: ledger.Alert}, Version: 1, Present: true,
			Previous: 9, Close: 2, Threshold: low, Cause: Cause{Partition: 3, Offset: d.Offset, TxnID: d.Assertion.TxnID, Revision: d.Assertion.Revision}, Count: 1}
		if d.Assertion.Key == keys[1] {
			want.Threshold = high
		}
		got, err := DecodeEnvelope(enc.Append(nil, &d, 0))
		if err != nil || got != want {
			t.Errorf("%+v %v, want %+v", got, err, want)
		}
	}
}

func TestEncoderPanicsOnAnAlertWithoutThreshold(t *testing.T) {
	cfg, err := manifest.New(manifest.Config{Namespace: "n", SourceIncarnation: testIncarnation, LedgerOrigin: 1, Partitions: 1, OpenKeys: &manifest.Terms{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	d := workedDecisions()[2]
	NewEncoder(cfg, 0).Append(nil, &d, 1)
}
