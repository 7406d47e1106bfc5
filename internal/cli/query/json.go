package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"

	"amends/internal/explain"
	"amends/internal/ledger"
	"amends/internal/store/postgres/reader"
	"amends/internal/wire"
)

// The JSON forms. They only ever gain members; docs/reference/schemas has them.

type jsonAnswer struct {
	Schema    int             `json:"schema"`
	Namespace string          `json:"namespace"`
	Item      string          `json:"item"`
	Location  string          `json:"location"`
	Partition int32           `json:"partition"`
	Scale     int32           `json:"quantity_scale"`
	Known     jsonKnown       `json:"known_at"`
	AsOf      *string         `json:"as_of"`
	Balance   int64           `json:"balance"`
	Scaled    string          `json:"scaled"`
	Day       *string         `json:"day"`
	Version   *int64          `json:"version"`
	Alert     *jsonAlert      `json:"alert"`
	Trusted   bool            `json:"trusted"`
	Status    json.RawMessage `json:"status"`
	Frozen    *jsonSource     `json:"frozen_by"`
}

type jsonKnown struct {
	Partition int32 `json:"partition"`
	Frontier  int64 `json:"frontier"`
	Complete  bool  `json:"complete"`
}

type jsonAlert struct {
	Previous  int64 `json:"previous"`
	Close     int64 `json:"close"`
	Threshold int64 `json:"threshold"`
}

type jsonSource struct {
	Partition int32       `json:"partition"`
	Offset    int64       `json:"offset"`
	TxnID     string      `json:"txn_id"`
	Revision  int64       `json:"revision"`
	Class     string      `json:"class"`
	Asserts   jsonAsserts `json:"asserts"`
	Before    any         `json:"before,omitempty"` // null for the first record; left out, as change, where it is not known
	Change    any         `json:"change,omitempty"` // null where a count takes part
	Arrived   *string     `json:"arrived_at"`
	Committed string      `json:"committed_at"`
}

type jsonAsserts struct {
	State    string  `json:"state"`
	Kind     *string `json:"kind"`
	Day      *string `json:"day"`
	Quantity *int64  `json:"quantity"`
}

type jsonStanding struct {
	Revision int64 `json:"revision"`
	jsonAsserts
}

type jsonVersion struct {
	Output    string          `json:"output"`
	Item      string          `json:"item"`
	Location  string          `json:"location"`
	Day       *string         `json:"day"`
	Version   int64           `json:"version"`
	Present   bool            `json:"present"`
	Payload   json.RawMessage `json:"payload"`
	Partition int32           `json:"partition"`
	Sequence  int64           `json:"sequence"`
	Repair    jsonRepair      `json:"repair"`
	Cause     jsonSource      `json:"cause"`
	Published *jsonPublished  `json:"published"`
}

type jsonRepair struct {
	Index int `json:"index"`
	Count int `json:"count"`
}

type jsonPublished struct {
	At     string `json:"at"`
	Offset int64  `json:"offset"`
}

type jsonLine struct {
	Kind      string   `json:"kind"`
	Day       *string  `json:"day"`
	TxnID     *string  `json:"txn_id"`
	Revision  *int64   `json:"revision"`
	Partition *int32   `json:"partition"`
	Offset    *int64   `json:"offset"`
	Movements *int64   `json:"movements"`
	Amount    *big.Int `json:"amount"`
	Total     *big.Int `json:"total"`
}

type jsonRow struct {
	Day     string     `json:"day"`
	Close   int64      `json:"close"`
	Scaled  string     `json:"scaled"`
	Version int64      `json:"version"`
	Alert   *jsonAlert `json:"alert"`
}

func dayOf(d ledger.Day) *string {
	if d == 0 {
		return nil
	}
	s := d.String()
	return &s
}

// stamp writes a time to the microsecond, which is what the database keeps, so that times sort as text.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }

// head is what an answer about a key begins with.
func (a *answer) head(x *explain.Answer, as ledger.Day) jsonAnswer {
	j := jsonAnswer{Schema: 1, Namespace: a.cfg.Namespace, Item: x.Key.Key.Item, Location: x.Key.Key.Location, Partition: int32(x.Key.Partition), Scale: a.scale,
		Known: jsonKnown{Partition: int32(x.Known.Partition), Frontier: int64(x.Known.Frontier), Complete: !x.Known.Early},
		AsOf:  dayOf(as), Balance: x.Balance.Close, Scaled: a.quantity(x.Balance.Close), Day: dayOf(x.Balance.Day),
		Alert: alertOf(&x.Balance, x.Threshold), Status: json.RawMessage("null")}
	if x.Balance.Day != 0 {
		version := int64(x.Balance.Version)
		j.Version = &version
	}
	if x.Status != nil {
		j.Status, j.Trusted = wire.AppendStatus(nil, x.Status), !x.Status.Blocked
	}
	if x.Blocked != nil {
		s := sourceOf(x.Blocked, true)
		j.Frozen = &s
	}
	return j
}

func alertOf(b *explain.Balance, threshold *int64) *jsonAlert {
	if !b.Alert || threshold == nil {
		return nil
	}
	return &jsonAlert{Previous: b.Previous, Close: b.Close, Threshold: *threshold}
}

func assertsOf(p ledger.Payload) jsonAsserts {
	j := jsonAsserts{State: p.State.String(), Day: dayOf(p.Day)}
	if p.State == ledger.Active {
		kind, quantity := p.Kind.String(), int64(p.Quantity)
		j.Kind, j.Quantity = &kind, &quantity
	}
	return j
}

// sourceOf writes a cause; history says whether what stood before is known.
func sourceOf(c *explain.Cause, history bool) jsonSource {
	a := &c.Assertion
	j := jsonSource{Partition: int32(c.Partition), Offset: int64(c.Offset), TxnID: a.TxnID, Revision: int64(a.Revision), Class: c.Class.String(),
		Asserts: assertsOf(a.Payload), Committed: stamp(c.Committed)}
	if c.Arrived > 0 {
		at := stamp(time.UnixMilli(c.Arrived))
		j.Arrived = &at
	}
	if !history {
		return j
	}
	null := json.RawMessage("null")
	j.Before, j.Change = null, null
	if b := c.Before; b != nil {
		standing := jsonStanding{Revision: int64(b.Revision), jsonAsserts: jsonAsserts{State: "ambiguous"}}
		if !b.Ambiguous {
			standing.jsonAsserts = assertsOf(b.Payload)
		}
		j.Before = standing
	}
	if n, ok := c.Change(); ok {
		j.Change = n
	}
	return j
}

func versionOf(v *explain.Version, history bool) jsonVersion {
	j := jsonVersion{Output: v.Output.Kind.String(), Item: v.Output.Key.Item, Location: v.Output.Key.Location, Day: dayOf(v.Output.Day),
		Version: int64(v.Change.Version), Present: v.Change.Present, Payload: payloadOf(&v.Change, v.Threshold), Partition: int32(v.Cause.Partition),
		Sequence: int64(v.Sequence), Repair: jsonRepair{v.Index, v.Count}, Cause: sourceOf(&v.Cause, history), Published: publishedOf(v.Published)}
	return j
}

func publishedOf(p *reader.Publication) *jsonPublished {
	if p == nil {
		return nil
	}
	return &jsonPublished{At: stamp(p.At), Offset: int64(p.Offset)}
}

// payloadOf is the payload of S8, null for a withdrawal.
func payloadOf(c *ledger.Change, threshold int64) json.RawMessage {
	if !c.Present {
		return json.RawMessage("null")
	}
	return wire.AppendPayload(nil, &wire.Envelope{Output: ledger.OutputID{Kind: c.Kind}, Status: c.Status, Close: c.Close, Previous: c.Previous, Threshold: threshold})
}

func lineOf(l *explain.Line, in ledger.Partition) jsonLine {
	j := jsonLine{Kind: string(l.Kind), Day: dayOf(l.Day), Amount: l.Amount, Total: l.Total}
	switch l.Kind {
	case explain.OpeningBalance:
	case explain.DayOfMovements:
		j.Movements = &l.Movements
	default:
		revision, partition, offset := int64(l.Revision), int32(in), int64(l.Source)
		j.TxnID, j.Revision, j.Partition, j.Offset = &l.TxnID, &revision, &partition, &offset
	}
	return j
}

// list streams a JSON object whose last member is a list: the head's members, then one element a line.
type list struct {
	out   io.Writer
	count int
}

func newList(out io.Writer, head any, name string) (*list, error) {
	text, err := encode(head)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(out, "%s,\n%q:[", strings.TrimSuffix(string(text), "}"), name)
	return &list{out: out}, err
}

func (l *list) add(v any) error {
	text, err := encode(v)
	if err != nil {
		return err
	}
	separator := ",\n  "
	if l.count == 0 {
		separator = "\n  "
	}
	l.count++
	_, err = fmt.Fprintf(l.out, "%s%s", separator, text)
	return err
}

// next ends the list and begins another one.
func (l *list) next(name string) error {
	end := "]"
	if l.count > 0 {
		end = "\n]"
	}
	l.count = 0
	_, err := fmt.Fprintf(l.out, "%s,\n%q:[", end, name)
	return err
}

func (l *list) close() error {
	end := "]}\n"
	if l.count > 0 {
		end = "\n]}\n"
	}
	_, err := io.WriteString(l.out, end)
	return err
}

// encode writes one line; what HTML would need escaped stays as it is.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
