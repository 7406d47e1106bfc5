package wire

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"amends/internal/ledger"
)

// Problem says why bytes were refused: at Column, counted in bytes from 1, for Reason.
type Problem struct {
	Reason string
	Column int
}

// Error returns the column and the reason.
func (p *Problem) Error() string { return "byte " + strconv.Itoa(p.Column) + ": " + p.Reason }

// The kinds of JSON tokens. A number is whole if it is digits only (S3).
const (
	noToken     = 0
	stringToken = '"'
	wholeToken  = '0'
	otherNumber = '-'
	objectToken = '{'
	arrayToken  = '['
	nullToken   = 'n'
	trueToken   = 't'
	falseToken  = 'f'
)

// token is one value: src[from:to], for a string without its quotes. An escaped string holds a backslash.
type token struct {
	from, to int
	kind     byte
	escaped  bool
}

// nameAt is a member name after unescaping, and where it stands.
type nameAt struct {
	name []byte
	at   int
}

// scanner reads JSON by the rules of row 2 of S3: strict RFC 8259, names unique in each object, no unpaired surrogates,
// at most ledger.MaxNesting open containers. It stops at the first fault, which is then in problem. That src is valid
// UTF-8 is checked before. The buffers are kept from one text to the next.
type scanner struct {
	src     []byte
	problem *Problem
	names   []nameAt
	text    []byte
	pos     int
}

func (s *scanner) reset(src []byte) {
	*s = scanner{src: src, names: s.names[:0], text: s.text[:0]}
	if !utf8.Valid(src) {
		s.fail(invalidAt(src), "not valid UTF-8")
	}
}

func (s *scanner) fail(at int, reason string) {
	if s.problem == nil {
		s.problem = &Problem{Reason: reason, Column: at + 1}
	}
}

// peek returns the next byte after white space, 0 at the end; a NUL byte is no token either.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.src); s.pos++ {
		switch c := s.src[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// open enters the object that the whole text must be.
func (s *scanner) open() {
	if s.problem == nil && s.peek() != '{' {
		s.fail(s.pos, "not a JSON object")
	}
	s.pos++
}

// member reads up to the next member's value and returns its name; more is false after the last one and on a fault.
func (s *scanner) member(first bool) (name token, more bool) {
	if s.problem != nil {
		return token{}, false
	}
	c := s.peek()
	switch {
	case c == '}':
		s.pos++
		return token{}, false
	case first:
	case c == ',':
		s.pos++
		c = s.peek()
	default:
		s.fail(s.pos, "a comma or the object's end is missing")
		return token{}, false
	}
	if c != '"' {
		s.fail(s.pos, "a member name is missing")
		return token{}, false
	}
	name = s.str()
	if s.problem == nil && s.peek() != ':' {
		s.fail(s.pos, "a colon is missing")
	}
	s.pos++
	return name, s.problem == nil
}

// end checks that nothing but white space follows.
func (s *scanner) end() {
	if s.problem != nil {
		return
	}
	if s.peek(); s.pos < len(s.src) {
		s.fail(s.pos, "data follows the object")
	}
}

// value reads one value inside depth open containers.
func (s *scanner) value(depth int) token {
	switch c := s.peek(); {
	case c == '"':
		return s.str()
	case c >= '0' && c <= '9', c == '-':
		return s.number()
	case c == '{', c == '[':
		return s.container(c, depth)
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	s.fail(s.pos, "a value is missing")
	return token{}
}

func (s *scanner) container(c byte, depth int) token {
	from := s.pos
	if depth >= ledger.MaxNesting {
		s.fail(from, "nested deeper than "+strconv.Itoa(ledger.MaxNesting))
		return token{}
	}
	s.pos++
	if c == '{' {
		s.object(depth + 1)
	} else {
		s.array(depth + 1)
	}
	return token{kind: c, from: from, to: s.pos}
}

func (s *scanner) object(depth int) {
	base := len(s.names)
	for first := true; ; first = false {
		name, more := s.member(first)
		if !more {
			break
		}
		s.names = append(s.names, nameAt{s.unescaped(name), name.from})
		s.value(depth)
	}
	s.distinct(base)
	s.names = s.names[:base]
}

func (s *scanner) array(depth int) {
	for first := true; s.problem == nil; first = false {
		switch c := s.peek(); {
		case c == ']':
			s.pos++
			return
		case first:
		case c == ',':
			s.pos++
		default:
			s.fail(s.pos, "a comma or the array's end is missing")
			return
		}
		s.value(depth)
	}
}

// distinct fails if a name occurs twice in s.names[base:]. It sorts them: quadratic work would be a gift to whoever
// sends thousands of names.
func (s *scanner) distinct(base int) {
	names := s.names[base:]
	if len(names) < 2 || s.problem != nil {
		return
	}
	slices.SortFunc(names, func(a, b nameAt) int {
		if c := bytes.Compare(a.name, b.name); c != 0 {
			return c
		}
		return a.at - b.at
	})
	for i := 1; i < len(names); i++ {
		if bytes.Equal(names[i-1].name, names[i].name) {
			s.fail(names[i].at, "the name "+quoted(names[i].name)+" stands twice in one object")
			return
		}
	}
}

func (s *scanner) literal(word string) token {
	from := s.pos
	if !bytes.HasPrefix(s.src[from:], []byte(word)) {
		s.fail(from, "a value is missing")
		return token{}
	}
	s.pos += len(word)
	return token{kind: word[0], from: from, to: s.pos}
}

func (s *scanner) number() token {
	t := token{kind: wholeToken, from: s.pos}
	if s.src[s.pos] == '-' {
		t.kind = otherNumber
		s.pos++
	}
	zero := s.pos < len(s.src) && s.src[s.pos] == '0'
	if n := s.digits(); n == 0 || zero && n > 1 {
		s.fail(t.from, "not a number")
	}
	if s.pos < len(s.src) && s.src[s.pos] == '.' {
		t.kind = otherNumber
		s.pos++
		if s.digits() == 0 {
			s.fail(t.from, "not a number")
		}
	}
	if s.pos < len(s.src) && s.src[s.pos]|0x20 == 'e' {
		t.kind = otherNumber
		s.pos++
		if s.pos < len(s.src) && (s.src[s.pos] == '+' || s.src[s.pos] == '-') {
			s.pos++
		}
		if s.digits() == 0 {
			s.fail(t.from, "not a number")
		}
	}
	t.to = s.pos
	return t
}

// digits moves over decimal digits and returns how many there were.
func (s *scanner) digits() int {
	from := s.pos
	for s.pos < len(s.src) && s.src[s.pos]-'0' <= 9 {
		s.pos++
	}
	return s.pos - from
}

// str reads a string whose opening quote is next.
func (s *scanner) str() token {
	t := token{kind: stringToken, from: s.pos + 1}
	for i := t.from; i < len(s.src); i++ {
		switch c := s.src[i]; {
		case c == '"':
			t.to = i
			s.pos = i + 1
			return t
		case c == '\\':
			t.escaped = true
			n := escapeLength(s.src[i:])
			if n == 0 {
				s.fail(i, "not an escape, or an unpaired surrogate")
				return token{}
			}
			i += n - 1
		case c < 0x20:
			s.fail(i, "a control character must be escaped")
			return token{}
		}
	}
	s.pos = len(s.src)
	s.fail(s.pos, "a string does not end")
	return token{}
}

// escapeLength returns how many bytes the escape at the start of b has, a surrogate pair being one escape; 0 if it is none.
func escapeLength(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
	default:
		return 0
	}
	r, ok := hex4(b)
	switch {
	case !ok:
		return 0
	case !utf16.IsSurrogate(r):
		return 6
	}
	low, ok := hex4(b[6:])
	if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
		return 0
	}
	return 12
}

// hex4 reads \uXXXX at the start of b.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescaped returns the bytes a string token stands for, which share memory with src or with the scanner's buffer
// and live until the next reset.
func (s *scanner) unescaped(t token) []byte {
	raw := s.src[t.from:t.to]
	if !t.escaped {
		return raw
	}
	from := len(s.text)
	s.text = appendUnescaped(s.text, raw)
	return s.text[from:len(s.text):len(s.text)]
}

// appendUnescaped appends what raw, the inside of a valid JSON string, stands for.
func appendUnescaped(dst, raw []byte) []byte {
	for len(raw) > 0 {
		if raw[0] != '\\' {
			n := bytes.IndexByte(raw, '\\')
			if n < 0 {
				n = len(raw)
			}
			dst = append(dst, raw[:n]...)
			raw = raw[n:]
			continue
		}
		n := escapeLength(raw)
		switch c := raw[1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(raw)
			if n == 12 {
				low, _ := hex4(raw[6:])
				r = utf16.DecodeRune(r, low)
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, c)
		}
		raw = raw[n:]
	}
	return dst
}

// invalidAt returns the index of the first byte that is not part of valid UTF-8.
func invalidAt(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}

// quoted returns b quoted and cut to a length that fits on a line.
func quoted(b []byte) string {
	const most = 80
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + "…"
	}
	return strconv.Quote(string(b))
}
