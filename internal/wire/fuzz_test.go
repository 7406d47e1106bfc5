package wire

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/ledger"
	"amends/internal/pace"
)

// seeds are values from which mutants and fuzz inputs grow.
var seeds = []string{
	active, cancelled,
	`{"schema":1,"txn_id":"\u0000\ud83d\ude00","revision":9223372036854775807,"state":"active","item":"é","location":"\/\"","day":"9999-12-31","kind":"opening_count","quantity":0}`,
	`{"schema":2,"a":[{"b":[1.5e-3,-0,true,false,null]},"\n"],"c":{}}`,
	` { "schema" : 1 , "state" : "?" } `,
}

// fragments are what mutants put in.
var fragments = []string{`"`, `\`, `{`, `}`, `[`, `]`, `,`, `:`, ` `, "\n", `0`, `1`, `9`, `-`, `.`, `e`, `null`, `true`, `\u0061`, `\ud800`, `\udc00`, `\u0000`, "\x00", "\xff", "\u00e9",
	"\ufeff", `"a":1,`, `"a":1,"a":1,`, `"schema":2,`, `"schema":1,`, `"quantity":0`, `"state":"cancelled",`, `"kind":"issue",`, `"note":{"x":[]},`, `18446744073709551616`, `0001-01-01`, `{"a":`, `[[[[`, `]]]]`}

// mutant changes a seed in one to four places: bytes cut out, doubled, replaced or put in.
func mutant(r *rand.Rand) []byte {
	b := []byte(seeds[r.IntN(len(seeds))])
	for range 1 + r.IntN(4) {
		if len(b) == 0 {
			break
		}
		at := r.IntN(len(b))
		n := min(r.IntN(12), len(b)-at)
		put := fragments[r.IntN(len(fragments))]
		switch r.IntN(4) {
		case 0:
			b = append(b[:at:at], b[at+n:]...)
		case 1:
			b = append(b[:at+n:at+n], b[at:]...)
		case 2:
			b = append(append(b[:at:at], put...), b[min(at+len(put), len(b)):]...)
		default:
			b = append(append(b[:at:at], put...), b[at:]...)
		}
	}
	return b
}

// The decoder and the slow second one agree on 60,000 mutants, among them hundreds of each outcome.
func TestDecoderAgreesWithReference(t *testing.T) {
	outcomes := map[ledger.Rejection]int{}
	r := rand.New(rand.NewPCG(1, 2))
	for range pace.Of(60_000) {
		outcomes[agree(t, mutant(r))]++
	}
	for _, code := range []ledger.Rejection{0, ledger.Malformed, ledger.UnsupportedSchema, ledger.InvalidValue} {
		if outcomes[code] < pace.Of(300) {
			t.Errorf("outcome %q occurred %d times, want at least %d", code, outcomes[code], pace.Of(300))
		}
	}
}

// agree checks a value in both decoders, and what is accepted in a round trip.
func agree(t testing.TB, value []byte) ledger.Rejection {
	t.Helper()
	got, code, p := ParseValue(value)
	want, ref := referenceParse(value)
	if code != ref || got != want {
		t.Fatalf("%q: %v (%v) %+v, the reference says %v %+v", value, code, p, got, ref, want)
	}
	if code != 0 {
		return code
	}
	written := AppendAssertion(nil, got)
	if again, code, p := ParseValue(written); code != 0 || again != got {
		t.Fatalf("%q reads back as %v %v %+v", written, code, p, again)
	}
	return 0
}

func FuzzParseValue(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) { agree(t, value) })
}

func FuzzParseKey(f *testing.F) {
	f.Add([]byte(`{"item":"widget","location":"berlin"}`))
	f.Add([]byte("\n{\"location\": \"\\u0000\", \"item\" :\"\\ud83d\\ude00\"} "))
	f.Fuzz(func(t *testing.T, key []byte) {
		k, ok := ParseKey(key)
		c, canonical := ParseCanonicalKey(key)
		if canonical && (!ok || c != k) {
			t.Fatalf("%q: canonical %q, parsed %q %v", key, c, k, ok)
		}
		if !ok {
			return
		}
		written := AppendKey(nil, k)
		if again, ok := ParseCanonicalKey(written); !ok || again != k {
			t.Fatalf("%q writes %q, which reads back as %q %v", key, written, again, ok)
		}
		if canonical != bytes.Equal(written, key) {
			t.Fatalf("%q: canonical is %v", key, canonical)
		}
	})
}

func FuzzDecodeEnvelope(f *testing.F) {
	for _, line := range lines(readFile(f, "testdata", "worked-example.jsonl")) {
		f.Add([]byte(line))
	}
	f.Add([]byte(`{"schema":1,"namespace":"n","sequence":0,"output":["status","a\u0000","b"],"version":1,"present":true,"payload":{"status":"BLOCKED","reasons":[` +
		`{"code":"AMBIGUOUS","txn_id":"T","revision":1},{"code":"COUNTS_DISAGREE","day":"2026-01-01"}],"more":0},"cause":{"partition":0,"offset":0,"txn_id":"T","revision":1},"repair":{"index":0,"count":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := DecodeEnvelope(text)
		if err != nil {
			return
		}
		if again := AppendEnvelope(nil, &e); !bytes.Equal(again, text) {
			t.Fatalf("%q is accepted, its own encoding is %q", text, again)
		}
	})
}

// randomEnvelope returns a valid envelope with hostile strings and numbers at the ends of their ranges.
func randomEnvelope(r *rand.Rand) Envelope {
	texts := []string{"widget", "T-1", "\x00", "\"\\/", "\b\f\n\r\t\x1f\x7f", "é😀\u2028", "<b>&"}
	text := func() string { return texts[r.IntN(len(texts))] + texts[r.IntN(len(texts))] }
	number := func() int64 { return []int64{0, 1, 60, 1<<63 - 1}[r.IntN(4)] }
	e := Envelope{
		Namespace: "n.1", Sequence: ledger.Sequence(number()), Version: ledger.Version(max(number(), 1)), Count: 1 + r.IntN(ledger.MaxRepair), Present: r.IntN(4) > 0,
		Output: ledger.OutputID{Key: ledger.StockKey{Item: text(), Location: text()}, Kind: ledger.OutputKind(1 + r.IntN(3))},
		Cause:  Cause{Partition: ledger.Partition(r.IntN(ledger.MaxPartitions)), Offset: ledger.Offset(number()), TxnID: text(), Revision: ledger.Revision(max(number(), 1))},
	}
	e.Index = r.IntN(e.Count)
	if e.Output.Kind != ledger.TrustStatus {
		e.Output.Day = 1 + ledger.Day(r.IntN(int(ledger.MaxDay)))
	}
	switch {
	case !e.Present:
	case e.Output.Kind == ledger.Balance:
		e.Close = -number()
	case e.Output.Kind == ledger.Alert:
		e.Previous, e.Close, e.Threshold = number(), -1-number(), -number()
	default:
		e.Status = &ledger.Status{Blocked: r.IntN(2) == 0}
		if e.Status.Blocked {
			ids := slices.Clone(texts)
			slices.Sort(ids)
			for _, id := range ids[:r.IntN(len(ids))] {
				e.Status.Reasons = append(e.Status.Reasons, ledger.Reason{Code: ledger.Ambiguous, TxnID: id, Revision: ledger.Revision(max(number(), 1))})
			}
			if len(e.Status.Reasons) == 0 || r.IntN(2) == 0 {
				e.Status.Reasons = append(e.Status.Reasons, ledger.Reason{Code: ledger.CountsDisagree, Day: 1 + ledger.Day(r.IntN(1000))})
			}
		}
	}
	return e
}

// What is encoded is decoded to the same, and one changed byte is refused or is another envelope's own encoding.
func TestEnvelopesRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	accepted := 0
	for range pace.Of(20_000) {
		e := randomEnvelope(r)
		text := AppendEnvelope(nil, &e)
		got, err := DecodeEnvelope(text)
		if err != nil || !cmp.Equal(e, got) {
			t.Fatalf("%s: %v (-want +got)\n%s", text, err, cmp.Diff(e, got))
		}
		text[r.IntN(len(text))] = fragments[r.IntN(len(fragments))][0]
		if got, err = DecodeEnvelope(text); err == nil {
			accepted++
			if again := AppendEnvelope(nil, &got); !bytes.Equal(again, text) {
				t.Fatalf("%s is accepted, its own encoding is %s", text, again)
			}
		}
	}
	if accepted < 100 {
		t.Errorf("%d changed envelopes were another's encoding, want at least 100", accepted)
	}
}
