package row

import (
	"encoding/json"
	"fmt"
	"strconv"

	"amends/internal/ledger"
	"amends/internal/manifest"
)

const readyStatus = `{"status":"READY","reasons":[],"more":0}`

// AppendStatus appends a status payload as JSON text, which never holds a raw NUL: the payload of S8.
func AppendStatus(dst []byte, s *ledger.Status) []byte {
	if !s.Blocked {
		return append(dst, readyStatus...)
	}
	dst = append(dst, `{"status":"BLOCKED","reasons":[`...)
	for i, r := range s.Reasons {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"code":"`...)
		dst = append(dst, r.Code.String()...)
		if r.Code == ledger.Ambiguous {
			dst = append(dst, `","txn_id":`...)
			dst = manifest.AppendString(dst, r.TxnID)
			dst = append(dst, `,"revision":`...)
			dst = strconv.AppendInt(dst, int64(r.Revision), 10)
		} else {
			dst = append(dst, `","day":"`...)
			dst = append(r.Day.AppendTo(dst), '"')
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `],"more":`...)
	dst = strconv.AppendInt(dst, s.More, 10)
	return append(dst, '}')
}

// ReadStatus reads what AppendStatus wrote.
func ReadStatus(text []byte) (*ledger.Status, error) {
	if string(text) == readyStatus {
		return &ledger.Status{}, nil
	}
	var payload struct {
		Status  string
		Reasons []struct {
			Code     string
			TxnID    string `json:"txn_id"`
			Day      string
			Revision ledger.Revision
		}
		More int64
	}
	if err := json.Unmarshal(text, &payload); err != nil {
		return nil, fmt.Errorf("read status: %w", err)
	}
	s := &ledger.Status{Blocked: payload.Status == "BLOCKED", More: payload.More}
	for _, r := range payload.Reasons {
		reason := ledger.Reason{TxnID: r.TxnID, Revision: r.Revision}
		reason.Day, _ = ledger.ParseDay(r.Day)
		for _, c := range []ledger.ReasonCode{ledger.Ambiguous, ledger.CountsDisagree, ledger.Unrepresentable} {
			if c.String() == r.Code {
				reason.Code = c
			}
		}
		s.Reasons = append(s.Reasons, reason)
	}
	if string(AppendStatus(nil, s)) != string(text) {
		return nil, fmt.Errorf("read status: %q is not a status payload", text)
	}
	return s, nil
}
