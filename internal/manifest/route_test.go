package manifest

import (
	"testing"

	"amends/internal/ledger"
)

// The vectors of Kafka's own UtilsTest.testMurmur2, as the ints it expects.
func TestMurmur2MatchesKafka(t *testing.T) {
	for text, want := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536, "a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, "abc": 479470107,
	} {
		if got := int32(murmur2([]byte(text))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestTermsAndRoute(t *testing.T) {
	widget, gizmo := ledger.StockKey{Item: "widget", Location: "berlin"}, ledger.StockKey{Item: "gizmo", Location: "berlin"}
	closed := must(Default("n", incarnation))
	if terms, ok := closed.Terms(widget); !ok || terms.OpeningBalance != 0 || *terms.Threshold != 60 {
		t.Errorf("terms of a listed key: %+v %v", terms, ok)
	}
	if p, ok := closed.Route(widget); p != 0 || !ok {
		t.Errorf("a listed key on %d %v", p, ok)
	}
	if _, ok := closed.Terms(gizmo); ok {
		t.Error("a key that is not listed has terms")
	}
	if _, ok := closed.Route(gizmo); ok {
		t.Error("a key that is not listed has a partition")
	}
	open := *closed
	open.StockKeys = []StockKey{{Key: widget, Partition: 1}}
	open.OpenKeys = &Terms{OpeningBalance: 7}
	built := must(New(open))
	if terms, ok := built.Terms(gizmo); !ok || terms.OpeningBalance != 7 || terms.Threshold != nil {
		t.Errorf("terms of an open key: %+v %v", terms, ok)
	}
	if p, _ := built.Route(widget); p != 1 {
		t.Errorf("a listed key is routed to %d, want its own partition 1", p)
	}
	const encoded = `{"item":"gizmo","location":"berlin"}`
	want := ledger.Partition(murmur2([]byte(encoded)) & 0x7fffffff % 2)
	if p, ok := built.Route(gizmo); p != want || !ok {
		t.Errorf("an open key is routed to %d %v, want %d", p, ok, want)
	}
}

func TestAppendStringEscapes(t *testing.T) {
	all := make([]byte, 0, 0x21)
	for c := byte(0); c < 0x20; c++ {
		all = append(all, c)
	}
	const want = `"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f"`
	if got := string(AppendString(nil, string(all))); got != want {
		t.Errorf("controls: %s", got)
	}
	for s, want := range map[string]string{"": `""`, `"\/`: `"\"\\/"`, "\x7f\u0080\u2028<>&é😀": "\"\x7f\u0080\u2028<>&é😀\"", "a\nb": `"a\nb"`} {
		if got := string(AppendString([]byte("x"), s)); got != "x"+want {
			t.Errorf("%q: %s", s, got)
		}
	}
}
