package diagnose

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
)

// MarshalJSON writes the record's bytes as hex and as text, in which what is not UTF-8 is replaced; both null where absent.
func (r Record) MarshalJSON() ([]byte, error) {
	e := &r.Evidence
	return json.Marshal(struct {
		Partition   int32      `json:"partition"`
		Offset      int64      `json:"offset"`
		Code        string     `json:"code"`
		Decided     *time.Time `json:"decided"`
		Broker      *time.Time `json:"broker_time"`
		Whole       bool       `json:"whole"`
		KeyLength   int64      `json:"key_length"`
		ValueLength int64      `json:"value_length"`
		KeySHA      string     `json:"key_sha256"`
		ValueSHA    string     `json:"value_sha256"`
		KeyHex      *string    `json:"key_hex"`
		ValueHex    *string    `json:"value_hex"`
		KeyText     *string    `json:"key_text"`
		ValueText   *string    `json:"value_text"`
	}{int32(r.Partition), int64(r.Offset), r.Code.String(), r.Decided, r.Broker, r.Whole(), e.KeyLength, e.ValueLength,
		hex.EncodeToString(e.KeySHA[:]), hex.EncodeToString(e.ValueSHA[:]), hexOf(e.Key), hexOf(e.Value), textOf(e.Key), textOf(e.Value)})
}

func hexOf(b []byte) *string {
	if b == nil {
		return nil
	}
	s := hex.EncodeToString(b)
	return &s
}

func textOf(b []byte) *string {
	if b == nil {
		return nil
	}
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	return &s
}
