package store

import (
	"errors"
	"math"
	"strings"
	"testing"

	"amends/internal/ledger"
)

func validBatch() *ledger.Batch {
	return &ledger.Batch{Expected: 3, Next: 6, FirstSequence: 7, NextSequence: 8, Decisions: []ledger.Decision{
		{Offset: 3, Class: ledger.Applied, KeyID: 3, NewKey: true, Sequence: 7, Changes: []ledger.Change{{Kind: ledger.Balance, Day: 1, Version: 1}}},
		{Offset: 5, Rejection: ledger.Malformed, Evidence: &ledger.Evidence{}},
	}}
}

func TestCheckBatch(t *testing.T) {
	if err := CheckBatch(validBatch()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*ledger.Batch)
		want   error
	}{
		"sequence wraps":        {func(b *ledger.Batch) { b.NextSequence = math.MinInt64 }, ErrExhausted},
		"version wraps":         {func(b *ledger.Batch) { b.Decisions[0].Changes[0].Version = math.MinInt64 }, ErrExhausted},
		"version zero":          {func(b *ledger.Batch) { b.Decisions[0].Changes[0].Version = 0 }, ErrExhausted},
		"frontier falls":        {func(b *ledger.Batch) { b.Next = 2 }, ErrProtocol},
		"negative frontier":     {func(b *ledger.Batch) { b.Expected = -1 }, ErrProtocol},
		"offset before":         {func(b *ledger.Batch) { b.Decisions[0].Offset = 2 }, ErrProtocol},
		"offset at next":        {func(b *ledger.Batch) { b.Decisions[1].Offset = 6 }, ErrProtocol},
		"offsets fall":          {func(b *ledger.Batch) { b.Decisions[1].Offset = 3 }, ErrProtocol},
		"class and rejection":   {func(b *ledger.Batch) { b.Decisions[0].Rejection = ledger.Malformed }, ErrProtocol},
		"neither":               {func(b *ledger.Batch) { b.Decisions[0].Class = 0 }, ErrProtocol},
		"no evidence":           {func(b *ledger.Batch) { b.Decisions[1].Evidence = nil }, ErrProtocol},
		"evidence of valid":     {func(b *ledger.Batch) { b.Decisions[0].Evidence = &ledger.Evidence{} }, ErrProtocol},
		"key id of a new key":   {func(b *ledger.Batch) { b.Decisions[0].KeyID = 2 }, ErrProtocol},
		"sequence of a change":  {func(b *ledger.Batch) { b.Decisions[0].Sequence = 6 }, ErrProtocol},
		"outputs not accounted": {func(b *ledger.Batch) { b.NextSequence = 9 }, ErrProtocol},
	} {
		b := validBatch()
		c.change(b)
		if err := CheckBatch(b); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func validPage() *ViewPage {
	return &ViewPage{Before: ViewPosition{Sequence: 4, Output: 9, Cause: 2}, Next: ViewPosition{Sequence: 5, Output: 10, Cause: 3},
		Changes: []ViewChange{{Before: 2, Row: ViewRow{ID: ledger.OutputID{Key: ledger.StockKey{Item: "i", Location: "l"}, Day: 1, Kind: ledger.Balance},
			Version: 3, Sequence: 4, Count: 1, Present: true, Cause: Cause{TxnID: "T", Offset: 3, Revision: 1}}}}}
}

func TestCheckPage(t *testing.T) {
	if err := CheckPage(validPage()); err != nil {
		t.Fatal(err)
	}
	row := func(change func(*ViewRow)) func(*ViewPage) {
		return func(p *ViewPage) { change(&p.Changes[0].Row) }
	}
	for name, c := range map[string]struct {
		change func(*ViewPage)
		want   error
	}{
		"version wraps":            {row(func(r *ViewRow) { r.Version = math.MinInt64 }), ErrExhausted},
		"version not above":        {row(func(r *ViewRow) { r.Version = 2 }), ErrProtocol},
		"output falls":             {func(p *ViewPage) { p.Next.Output = 8 }, ErrProtocol},
		"sequence falls":           {func(p *ViewPage) { p.Next.Sequence = 3 }, ErrProtocol},
		"cause falls":              {func(p *ViewPage) { p.Next.Cause = 1 }, ErrProtocol},
		"more sequences than room": {func(p *ViewPage) { p.Next.Sequence = 11 }, ErrProtocol},
		"stopped before":           {func(p *ViewPage) { p.Before.Stopped = true }, ErrProtocol},
		"stopped without reason":   {func(p *ViewPage) { p.Next.Stopped = true }, ErrProtocol},
		"violation without a word": {func(p *ViewPage) { p.Next.Stopped, p.Stop = true, &Violation{} }, ErrProtocol},
		"violation elsewhere":      {func(p *ViewPage) { p.Next.Stopped, p.Stop = true, &Violation{Reason: "x", Partition: 1} }, ErrProtocol},
		"sequence outside":         {row(func(r *ViewRow) { r.Sequence = 5 }), ErrProtocol},
		"cause elsewhere":          {row(func(r *ViewRow) { r.Cause.Partition = 1 }), ErrProtocol},
		"no day":                   {row(func(r *ViewRow) { r.ID.Day = 0 }), ErrProtocol},
		"day past the last":        {row(func(r *ViewRow) { r.ID.Day = ledger.MaxDay + 1 }), ErrProtocol},
		"status with a day":        {row(func(r *ViewRow) { r.ID.Kind, r.Status = ledger.TrustStatus, &ledger.Status{} }), ErrProtocol},
		"status without payload":   {row(func(r *ViewRow) { r.ID.Kind, r.ID.Day = ledger.TrustStatus, 0 }), ErrProtocol},
		"kind past the last":       {row(func(r *ViewRow) { r.ID.Kind = 4 }), ErrProtocol},
		"index at count":           {row(func(r *ViewRow) { r.Index = 1 }), ErrProtocol},
		"no item":                  {row(func(r *ViewRow) { r.ID.Key.Item = "" }), ErrProtocol},
		"txn_id one past":          {row(func(r *ViewRow) { r.Cause.TxnID = strings.Repeat("x", ledger.MaxIdentifierBytes+1) }), ErrProtocol},
		"revision zero":            {row(func(r *ViewRow) { r.Cause.Revision = 0 }), ErrProtocol},
	} {
		p := validPage()
		c.change(p)
		if err := CheckPage(p); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestPlainTextHoldsNoNUL(t *testing.T) {
	if got := PlainText("a\x00b\xffc\U0001f9fa"); got != "a\\0b\uFFFDc\U0001f9fa" {
		t.Errorf("%q", got)
	}
}

func TestSC42MeasurementsSaturateAtTheLimit(t *testing.T) {
	for _, c := range [][3]int64{{math.MaxInt64 - 1, 1, math.MaxInt64}, {math.MaxInt64, 1, math.MaxInt64}, {math.MaxInt64 - 1, 5, math.MaxInt64}, {1, 2, 3}} {
		if got := saturate(c[0], c[1]); got != c[2] {
			t.Errorf("%d + %d = %d", c[0], c[1], got)
		}
	}
}
