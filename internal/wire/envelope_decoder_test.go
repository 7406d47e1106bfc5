package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"amends/internal/ledger"
	"amends/internal/wire"
)

// TestEnvelopeDecoderRemembersNothing: whatever came before, refused bytes included, an envelope is decoded as by itself.
func TestEnvelopeDecoderRemembersNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"a", "b", "ab", "\x00", "é"})
		var d wire.EnvelopeDecoder
		for i := range rapid.IntRange(1, 20).Draw(t, "records") {
			e := wire.Envelope{Namespace: rapid.SampledFrom([]string{"demo", "dem"}).Draw(t, "namespace"), Sequence: ledger.Sequence(i), Version: 1, Present: true, Count: 1,
				Output: ledger.OutputID{Kind: ledger.Balance, Day: 739_617, Key: ledger.StockKey{Item: text.Draw(t, "item"), Location: text.Draw(t, "location")}},
				Cause:  wire.Cause{TxnID: text.Draw(t, "txn"), Revision: 1}}
			b := wire.AppendEnvelope(nil, &e)
			if rapid.IntRange(0, 4).Draw(t, "spoil") == 0 {
				b = b[:len(b)-1]
			}
			want, refused := wire.DecodeEnvelope(b)
			got, err := d.Decode(b)
			if (err == nil) != (refused == nil) {
				t.Fatalf("%v, want %v", err, refused)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}
