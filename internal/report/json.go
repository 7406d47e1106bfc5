package report

import (
	"encoding/json"
	"io"

	"amends/internal/ledger"
	"amends/internal/store"
	"amends/internal/verify"
	"amends/internal/wire"
)

// JSON is the documented form of a report; members are only ever added.
type JSON struct {
	Schema        int            `json:"schema"`
	Namespace     string         `json:"namespace"`
	Status        verify.Status  `json:"status"`
	Mode          string         `json:"mode"`
	Deep          bool           `json:"deep"`
	Boundary      []jsonBoundary `json:"boundary"`
	SourceRecords int64          `json:"source_records"`
	Rejected      int64          `json:"rejected"`
	Outputs       int64          `json:"outputs"`
	Messages      int64          `json:"messages"`
	Blocked       []jsonBlocked  `json:"blocked"`
	Drift         jsonDrift      `json:"drift"`
	Reasons       []jsonReason   `json:"reasons"`
	Elapsed       float64        `json:"elapsed_seconds"`
}

type (
	jsonBoundary struct {
		Partition ledger.Partition `json:"partition"`
		SourceEnd ledger.Frontier  `json:"source_end"`
		OutputEnd ledger.Frontier  `json:"output_end"`
	}
	jsonBlocked struct {
		Item     string          `json:"item"`
		Location string          `json:"location"`
		Reasons  json.RawMessage `json:"reasons"`
		More     int64           `json:"more"`
	}
	jsonDrift struct {
		Count int64           `json:"count"`
		First *jsonDifference `json:"first"`
	}
	jsonDifference struct {
		What      verify.What      `json:"what"`
		Partition ledger.Partition `json:"partition"`
		Output    []string         `json:"output"`
		Offset    *int64           `json:"offset"`
		Detail    string           `json:"detail"`
		Expected  *jsonSide        `json:"expected"`
		Actual    *jsonSide        `json:"actual"`
	}
	jsonSide struct {
		Present bool            `json:"present"`
		Payload json.RawMessage `json:"payload"`
		Version *ledger.Version `json:"version"`
		Cause   *jsonCause      `json:"cause"`
		Sources []jsonCause     `json:"sources"`
	}
	jsonCause struct {
		Partition ledger.Partition `json:"partition"`
		Offset    ledger.Offset    `json:"offset"`
		TxnID     string           `json:"txn_id"`
		Revision  ledger.Revision  `json:"revision"`
	}
	jsonReason struct {
		Code      verify.Code       `json:"code"`
		Partition *ledger.Partition `json:"partition"`
		Offset    *int64            `json:"offset"`
		Sequence  *int64            `json:"sequence"`
		Detail    string            `json:"detail"`
	}
)

// WriteJSON writes a report as one line of JSON.
func WriteJSON(out io.Writer, r *verify.Report) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(Of(r))
}

// Of returns the JSON form of a report.
func Of(r *verify.Report) *JSON {
	j := &JSON{Schema: 1, Namespace: r.Namespace, Status: r.Status, Mode: r.Mode, Deep: r.Deep, SourceRecords: r.SourceRecords,
		Rejected: r.Rejected, Outputs: r.Outputs, Messages: r.Messages, Elapsed: r.Elapsed.Seconds(),
		Boundary: []jsonBoundary{}, Blocked: []jsonBlocked{}, Reasons: []jsonReason{}, Drift: jsonDrift{Count: r.Differences}}
	for _, b := range r.Boundary {
		j.Boundary = append(j.Boundary, jsonBoundary{b.Partition, b.SourceEnd, b.OutputEnd})
	}
	for _, k := range r.Blocked {
		j.Blocked = append(j.Blocked, jsonBlocked{Item: k.Key.Item, Location: k.Key.Location, Reasons: reasons(k.Status), More: k.Status.More})
	}
	for _, x := range r.Reasons {
		y := jsonReason{Code: x.Code, Detail: x.Detail, Offset: known(x.Offset), Sequence: known(x.Sequence)}
		if x.Partition >= 0 {
			y.Partition = &x.Partition
		}
		j.Reasons = append(j.Reasons, y)
	}
	if d := r.First; d != nil {
		j.Drift.First = &jsonDifference{What: d.What, Partition: d.Partition, Output: outputID(d.ID), Offset: known(d.Offset), Detail: d.Detail,
			Expected: sideOf(d.Expected), Actual: sideOf(d.Actual)}
	}
	return j
}

// known is nil for a coordinate that does not apply.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// outputID writes an output id as S8 does, nil for none.
func outputID(id ledger.OutputID) []string {
	switch id.Kind {
	case 0:
		return nil
	case ledger.TrustStatus:
		return []string{id.Kind.String(), id.Key.Item, id.Key.Location}
	}
	return []string{id.Kind.String(), id.Key.Item, id.Key.Location, id.Day.String()}
}

func sideOf(s *verify.Side) *jsonSide {
	if s == nil {
		return nil
	}
	out := &jsonSide{Present: s.Present, Sources: []jsonCause{}}
	if s.Present && s.Payload != nil {
		out.Payload = appendPayload(nil, s.Payload)
	}
	if s.Version > 0 {
		out.Version = &s.Version
	}
	if s.Cause != nil {
		c := causeOf(*s.Cause)
		out.Cause = &c
	}
	for _, c := range s.Sources {
		out.Sources = append(out.Sources, causeOf(c))
	}
	return out
}

func causeOf(c store.Cause) jsonCause {
	return jsonCause{Partition: c.Partition, Offset: c.Offset, TxnID: c.TxnID, Revision: c.Revision}
}

// appendPayload appends a payload as envelopes hold it (S8).
func appendPayload(dst []byte, p *verify.Payload) []byte {
	if p.Kind == ledger.TrustStatus && p.Status == nil {
		return append(dst, "null"...)
	}
	return wire.AppendPayload(dst, &wire.Envelope{Output: ledger.OutputID{Kind: p.Kind}, Status: p.Status, Close: p.Close, Previous: p.Previous, Threshold: p.Threshold})
}

// reasons returns the list of reasons of a status payload.
func reasons(s ledger.Status) json.RawMessage {
	var payload struct {
		Reasons json.RawMessage `json:"reasons"`
	}
	if err := json.Unmarshal(wire.AppendStatus(nil, &s), &payload); err != nil {
		return json.RawMessage("[]")
	}
	return payload.Reasons
}
