package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"amends/internal/ledger"
)

// reader walks one JSON text. The token reader under it refuses invalid UTF-8, unpaired surrogates and repeated
// names; what names, types and values are allowed is said here.
type reader struct {
	data []byte
	dec  *jsontext.Decoder
	ends map[string]int64 // where each member's name or element ends, by path, for faults found after reading
}

// readFunc reads the value of the member at path.
type readFunc func(path string) *Error

// member is one name that an object may have.
type member struct {
	name     string
	optional bool
	read     readFunc
}

func newReader(data []byte) *reader {
	return &reader{data: data, dec: jsontext.NewDecoder(bytes.NewReader(data)), ends: map[string]int64{}}
}

// file reads the whole text as one object and nothing behind it.
func (r *reader) file(path string, members []member) *Error {
	if e := r.object(path, members); e != nil {
		return e
	}
	switch _, err := r.dec.ReadToken(); {
	case err == nil:
		return r.refuse("", "data follows the object", "one JSON object")
	case !errors.Is(err, io.EOF):
		return r.broken(err)
	}
	return nil
}

func (r *reader) object(path string, members []member) *Error {
	if e := r.begin(path, jsontext.KindBeginObject, "a JSON object"); e != nil {
		return e
	}
	seen := make([]bool, len(members))
	for {
		t, err := r.dec.ReadToken()
		if err != nil {
			return r.broken(err)
		}
		if t.Kind() == jsontext.KindEndObject {
			break
		}
		name := t.String()
		i := indexOf(members, name)
		if i < 0 {
			return r.refuse(path, "unknown member "+quoted(name), names(members))
		}
		seen[i] = true
		at := join(path, name)
		r.ends[at] = r.dec.InputOffset()
		if e := members[i].read(at); e != nil {
			return e
		}
	}
	for i, m := range members {
		if !seen[i] && !m.optional {
			return r.refuse(join(path, m.name), "missing", "")
		}
	}
	return nil
}

func (r *reader) array(path string, read readFunc) *Error {
	if e := r.begin(path, jsontext.KindBeginArray, "a JSON array"); e != nil {
		return e
	}
	for i := 0; r.dec.PeekKind() != jsontext.KindEndArray; i++ {
		at := path + "[" + strconv.Itoa(i) + "]"
		if e := read(at); e != nil {
			return e
		}
		r.ends[at] = r.dec.InputOffset()
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return r.broken(err)
	}
	return nil
}

func (r *reader) begin(path string, want jsontext.Kind, allowed string) *Error {
	t, err := r.dec.ReadToken()
	if err != nil {
		return r.broken(err)
	}
	if t.Kind() != want {
		return r.refuse(path, describe(t), allowed)
	}
	return nil
}

// text reads a string of any length; what it may hold is checked when all is read.
func (r *reader) text(s *string) readFunc {
	return func(path string) *Error {
		t, err := r.dec.ReadToken()
		if err != nil {
			return r.broken(err)
		}
		if t.Kind() != jsontext.KindString {
			return r.refuse(path, describe(t), "a string")
		}
		*s = t.String()
		return nil
	}
}

func (r *reader) day(d *ledger.Day) readFunc {
	return func(path string) *Error {
		var s string
		if e := r.text(&s)(path); e != nil {
			return e
		}
		var ok bool
		if *d, ok = ledger.ParseDay(s); !ok {
			return r.refuse(path, quoted(s)+" is not a day", "YYYY-MM-DD, 0001-01-01 to 9999-12-31")
		}
		return nil
	}
}

// whole reads an integer of low..high: digits after at most a minus sign, no leading zero, no -0.
func (r *reader) whole(n *int64, low, high int64) readFunc {
	return func(path string) *Error {
		t, err := r.dec.ReadToken()
		if err != nil {
			return r.broken(err)
		}
		return r.integer(path, t, n, low, high)
	}
}

func (r *reader) whole32(n *int32, low, high int64) readFunc {
	return func(path string) *Error {
		var wide int64
		e := r.whole(&wide, low, high)(path)
		*n = int32(wide)
		return e
	}
}

func (r *reader) wholeOrNull(n **int64) readFunc {
	return func(path string) *Error {
		t, err := r.dec.ReadToken()
		if err != nil {
			return r.broken(err)
		}
		if t.Kind() == jsontext.KindNull {
			return nil
		}
		*n = new(int64)
		e := r.integer(path, t, *n, -1<<63, 1<<63-1)
		if e != nil && e.Allowed == "a whole number" {
			e.Allowed += " or null"
		}
		return e
	}
}

func (r *reader) integer(path string, t jsontext.Token, n *int64, low, high int64) *Error {
	s := t.String()
	if t.Kind() != jsontext.KindNumber || strings.ContainsAny(s, ".eE") || s == "-0" {
		return r.refuse(path, describe(t), "a whole number")
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < low || v > high {
		allowed := fmt.Sprintf("%d..%d", low, high)
		if low == high {
			allowed = strconv.FormatInt(low, 10)
		}
		return r.refuse(path, shortened(s)+" is out of range", allowed)
	}
	*n = v
	return nil
}

// broken turns a fault of the JSON text into the same words for every cause.
func (r *reader) broken(err error) *Error {
	e := &Error{Problem: "not valid JSON", Line: r.line()}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		e.Problem = "a name stands twice in one object"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Problem = "the text ends too early"
	}
	if errors.As(err, &syntax) {
		e.Line = lineAt(r.data, syntax.ByteOffset)
		e.Member = pathOf(syntax.JSONPointer)
	}
	return e
}

func (r *reader) refuse(path, problem, allowed string) *Error {
	e := refuse(path, problem, allowed)
	e.Line = r.line()
	return e
}

// placed gives e, found after reading, the line of its member.
func (r *reader) placed(e *Error) *Error {
	if end, ok := r.ends[e.Member]; ok && e.Line == 0 {
		e.Line = lineAt(r.data, end)
	}
	return e
}

func (r *reader) line() int { return lineAt(r.data, r.dec.InputOffset()) }

func lineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(int(offset), len(data))], []byte{'\n'})
}

func indexOf(members []member, name string) int {
	for i, m := range members {
		if m.name == name {
			return i
		}
	}
	return -1
}

func names(members []member) string {
	all := make([]string, len(members))
	for i, m := range members {
		all[i] = m.name
	}
	return strings.Join(all, ", ")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// pathOf writes a JSON pointer as the paths of this package: /config/stock_keys/0 is config.stock_keys[0].
func pathOf(p jsontext.Pointer) string {
	path := ""
	for name := range p.Tokens() {
		if _, err := strconv.Atoi(name); err == nil {
			path += "[" + name + "]"
		} else {
			path = join(path, name)
		}
	}
	return shortened(path)
}

// describe says what a token of the wrong type is.
func describe(t jsontext.Token) string {
	switch t.Kind() {
	case jsontext.KindString:
		return "the string " + quoted(t.String())
	case jsontext.KindNumber:
		return shortened(t.String())
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "an array"
	}
	return t.String()
}
