package provision

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/wire"
)

// Format is how a source file is written (design section 9).
type Format string

// The formats of source load.
const (
	JSONL Format = "jsonl" // each line one value of S3; validated, key and partition derived
	Raw   Format = "raw"   // each line {"partition","key","value"}, base64; published exactly so
)

// Valid reports whether f is a format.
func (f Format) Valid() bool { return f == JSONL || f == Raw }

func (f Format) parser(cfg *manifest.Config) parser {
	if f == Raw {
		return rawParser{cfg: cfg}
	}
	return valueParser{cfg: cfg}
}

// valueParser reads jsonl.
type valueParser struct{ cfg *manifest.Config }

func (valueParser) limit() int { return ledger.MaxValueBytes }

func (v valueParser) parse(line []byte) (record, *Problem) {
	a, code, fault := wire.ParseValue(line)
	if code != 0 {
		return record{}, &Problem{Code: code.String(), Reason: fault.Reason, Column: fault.Column}
	}
	day, origin := a.Payload.Day, v.cfg.LedgerOrigin
	if a.Payload.State == ledger.Active && (day < origin || day >= origin+ledger.HorizonDays) {
		return record{}, &Problem{Code: ledger.OutOfHorizon.String(), Column: 1,
			Reason: fmt.Sprintf("day %v is outside %v and the %d days from it", day, origin, ledger.HorizonDays)}
	}
	p, ok := v.cfg.Route(a.Key)
	if !ok {
		return record{}, &Problem{Code: ledger.UnknownKey.String(), Column: 1,
			Reason: fmt.Sprintf("item %q at location %q is not configured, and keys are not open", a.Key.Item, a.Key.Location)}
	}
	return record{partition: p, txnID: strings.Clone(a.TxnID), revision: a.Revision,
		message: broker.Message{Key: wire.AppendKey(nil, a.Key), Value: bytes.Clone(line)}}, nil
}

// rawParser reads the raw format.
type rawParser struct{ cfg *manifest.Config }

func (rawParser) limit() int { return maxRawLine }

func (r rawParser) parse(line []byte) (record, *Problem) {
	var in struct {
		Partition *int32         `json:"partition"`
		Key       jsontext.Value `json:"key"`
		Value     jsontext.Value `json:"value"`
	}
	if err := json.Unmarshal(line, &in, json.RejectUnknownMembers(true)); err != nil {
		return record{}, &Problem{Column: column(err), Reason: rawReason(err)}
	}
	if in.Partition == nil || in.Key == nil || in.Value == nil {
		return record{}, &Problem{Column: 1, Reason: "partition, key and value must all be there"}
	}
	if p := *in.Partition; p < 0 || p >= r.cfg.Partitions {
		return record{}, &Problem{Column: 1, Reason: fmt.Sprintf("partition %d is not one of 0..%d", p, r.cfg.Partitions-1)}
	}
	key, err := rawBytes(in.Key)
	if err != nil {
		return record{}, &Problem{Column: 1, Reason: "key: " + err.Error()}
	}
	value, err := rawBytes(in.Value)
	if err != nil {
		return record{}, &Problem{Column: 1, Reason: "value: " + err.Error()}
	}
	out := record{partition: ledger.Partition(*in.Partition), message: broker.Message{Key: key, Value: value}}
	if a, code, _ := wire.ParseValue(value); code == 0 {
		out.txnID, out.revision = strings.Clone(a.TxnID), a.Revision
	}
	return out, nil
}

// rawReason says in the words of the format what is wrong with a line.
func rawReason(err error) string {
	var semantic *json.SemanticError
	switch {
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &semantic):
		return fmt.Sprintf("unknown member %q; allowed: partition, key, value", semantic.JSONPointer.LastToken())
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "a name stands twice in one object"
	case errors.As(err, &semantic) && semantic.JSONPointer == "":
		return "not a JSON object"
	case semantic != nil:
		return "partition is not a whole number in range" // nothing else has a type here
	}
	return "not valid JSON"
}

// rawBytes reads null (nil) or a string of padded standard base64 (never nil).
func rawBytes(v jsontext.Value) ([]byte, error) {
	if v.Kind() == 'n' {
		return nil, nil
	}
	if v.Kind() != '"' {
		return nil, errors.New("must be a base64 string or null")
	}
	text, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return nil, err
	}
	out, err := base64.StdEncoding.Strict().AppendDecode(make([]byte, 0, len(text)), text)
	if err != nil {
		return nil, fmt.Errorf("must be padded base64 of the standard alphabet: %w", err)
	}
	if bytes.ContainsAny(text, "\r\n") {
		return nil, errors.New("must be base64 without line ends")
	}
	return out, nil
}

// column returns where a JSON error lies, in bytes from 1.
func column(err error) int {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return int(syntactic.ByteOffset) + 1
	}
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		return int(semantic.ByteOffset) + 1
	}
	return 1
}
