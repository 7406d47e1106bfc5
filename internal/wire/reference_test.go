package wire

import (
	"bytes"
	"errors"
	"io"
	"math/big"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"amends/internal/ledger"
)

// The slow second decoder: rows 1 to 5 of S3 read off the table one after the other, over a token reader, maps, big
// integers and the standard calendar. It shares nothing with the decoder but the types.

var (
	wholeForm = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)
	dayForm   = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
)

// referenceMember is one top-level member: its kind, and the string or number text.
type referenceMember struct {
	text string
	kind jsontext.Kind
}

func referenceParse(value []byte) (ledger.Assertion, ledger.Rejection) {
	var none ledger.Assertion
	if len(value) > 65_536 {
		return none, ledger.TooLarge
	}
	members, ok := referenceObject(value)
	if !ok {
		return none, ledger.Malformed
	}
	schema, ok := members["schema"]
	if !ok || schema.kind != jsontext.KindNumber || !wholeForm.MatchString(schema.text) {
		return none, ledger.Malformed
	}
	if schema.text != "1" {
		return none, ledger.UnsupportedSchema
	}
	if !referenceShape(members) {
		return none, ledger.Malformed
	}
	return referenceValues(members)
}

// referenceObject reads the text by row 2 and returns the members of the object.
func referenceObject(value []byte) (map[string]referenceMember, bool) {
	if !utf8.Valid(value) {
		return nil, false
	}
	members := map[string]referenceMember{}
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != jsontext.KindBeginObject {
		return nil, false
	}
	name, named := "", false
	for dec.StackDepth() > 0 {
		t, err := dec.ReadToken()
		if err != nil || dec.StackDepth() > 64 {
			return nil, false
		}
		switch {
		case dec.StackDepth() == 0: // the end of the object
		case dec.StackDepth() == 1 && !named && t.Kind() == jsontext.KindString:
			name, named = t.String(), true
		case dec.StackDepth() == 1 && named, dec.StackDepth() == 2 && named:
			m := referenceMember{kind: t.Kind()}
			if m.kind == jsontext.KindString || m.kind == jsontext.KindNumber {
				m.text = t.String()
			}
			members[name] = m
			named = false
		}
	}
	_, err := dec.ReadToken()
	return members, errors.Is(err, io.EOF)
}

func referenceShape(members map[string]referenceMember) bool {
	numbers := []string{"revision", "quantity"}
	common := []string{"schema", "txn_id", "revision", "state", "item", "location"}
	active := append(slices.Clone(common), "day", "kind", "quantity")
	for name, m := range members {
		switch {
		case !slices.Contains(active, name):
			return false
		case name == "schema":
		case slices.Contains(numbers, name):
			if m.kind != jsontext.KindNumber || !wholeForm.MatchString(m.text) {
				return false
			}
		case m.kind != jsontext.KindString:
			return false
		}
	}
	want := common
	switch state, ok := members["state"]; {
	case !ok:
		return false
	case state.text == "active":
		want = active
	case state.text != "cancelled":
		return true
	}
	for _, name := range want {
		if _, ok := members[name]; !ok {
			return false
		}
	}
	return len(members) == len(want)
}

func referenceValues(members map[string]referenceMember) (ledger.Assertion, ledger.Rejection) {
	var none ledger.Assertion
	a := ledger.Assertion{TxnID: members["txn_id"].text, Key: ledger.StockKey{Item: members["item"].text, Location: members["location"].text}}
	switch members["state"].text {
	case "active":
		a.Payload.State = ledger.Active
	case "cancelled":
		a.Payload.State = ledger.Cancelled
	default:
		return none, ledger.InvalidValue
	}
	for _, s := range []string{a.TxnID, a.Key.Item, a.Key.Location} {
		if len(s) < 1 || len(s) > 512 {
			return none, ledger.InvalidValue
		}
	}
	revision, ok := referenceWhole(members["revision"].text, 1)
	a.Revision = ledger.Revision(revision)
	switch {
	case !ok:
		return none, ledger.InvalidValue
	case a.Payload.State == ledger.Cancelled:
		return a, 0
	}
	kinds := map[string]ledger.Kind{"receipt": ledger.Receipt, "issue": ledger.Issue, "opening_count": ledger.OpeningCount, "closing_count": ledger.ClosingCount}
	a.Payload.Kind = kinds[members["kind"].text]
	least := int64(1)
	if a.Payload.Kind == ledger.OpeningCount || a.Payload.Kind == ledger.ClosingCount {
		least = 0
	}
	quantity, ok := referenceWhole(members["quantity"].text, least)
	day, err := time.Parse(time.DateOnly, members["day"].text)
	if !ok || a.Payload.Kind == 0 || err != nil || !dayForm.MatchString(members["day"].text) || day.Year() < 1 {
		return none, ledger.InvalidValue
	}
	a.Payload.Quantity = ledger.Quantity(quantity)
	// in seconds: a Duration holds 292 years only
	a.Payload.Day = ledger.Day((day.Unix()-time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Unix())/86_400) + 1
	return a, 0
}

func referenceWhole(digits string, least int64) (int64, bool) {
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok || n.Cmp(big.NewInt(least)) < 0 || !n.IsInt64() {
		return 0, false
	}
	return n.Int64(), true
}
