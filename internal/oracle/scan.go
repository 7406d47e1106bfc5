package oracle

import (
	"unicode/utf8"

	"amends/internal/ledger"
)

// shape is what kind of JSON value a member has, as far as S3 distinguishes.
type shape uint8

const (
	missing shape = iota
	text          // a string
	whole         // digits only
	number        // any other number
	other         // null, true, false, an object or an array
)

// member is a JSON value or name in its bytes: of a text the part between the quotes.
type member struct {
	raw     []byte
	shape   shape
	escaped bool // raw holds escapes
}

// scanner reads one JSON text strictly (S3, order 2). Any false means that the text is not acceptable.
type scanner struct {
	b []byte
	i int
}

// space skips white space and returns the next byte without taking it, 0 at the end.
func (s *scanner) space() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\n', '\t', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// take skips white space and takes c.
func (s *scanner) take(c byte) bool {
	if s.space() != c || s.i >= len(s.b) {
		return false
	}
	s.i++
	return true
}

// object reads one object and calls each with every member name; each reads the value.
func (s *scanner) object(each func(name member) bool) bool {
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return true
	}
	for {
		if s.space() != '"' {
			return false
		}
		name, ok := s.text()
		if !ok || !s.take(':') || !each(name) {
			return false
		}
		if s.take(',') {
			continue
		}
		return s.take('}')
	}
}

// value reads any value; depth is the number of objects and arrays around it.
func (s *scanner) value(depth int) (member, bool) {
	switch c := s.space(); {
	case c == '"':
		return s.text()
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == '{' || c == '[':
		return member{shape: other}, s.nested(c, depth+1)
	case c == 'n':
		return member{shape: other}, s.word("null")
	case c == 't':
		return member{shape: other}, s.word("true")
	case c == 'f':
		return member{shape: other}, s.word("false")
	}
	return member{}, false
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

// nested reads an object or array that is the depth-th of its nest, the outermost being the first.
func (s *scanner) nested(c byte, depth int) bool {
	if depth > ledger.MaxNesting {
		return false
	}
	if c == '{' {
		var seen names
		return s.object(func(name member) bool {
			if !seen.add(name.string()) {
				return false
			}
			_, ok := s.value(depth)
			return ok
		})
	}
	s.i++
	if s.take(']') {
		return true
	}
	for {
		if _, ok := s.value(depth); !ok {
			return false
		}
		if s.take(',') {
			continue
		}
		return s.take(']')
	}
}

// text reads a string at its opening quote: no control characters, only real escapes, surrogates in pairs.
func (s *scanner) text() (member, bool) {
	start := s.i + 1
	escaped := false
	for i := start; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			s.i = i + 1
			return member{raw: s.b[start:i], shape: text, escaped: escaped}, true
		case c < ' ':
			return member{}, false
		case c == '\\':
			_, n := escape(s.b[i:])
			if n == 0 {
				return member{}, false
			}
			escaped = true
			i += n - 1
		}
	}
	return member{}, false
}

// escape reads one escape, or a pair of them that makes one character; n is 0 where there is none.
func escape(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	high, ok := unit(b)
	switch {
	case !ok || high >= 0xdc00 && high < 0xe000:
		return 0, 0
	case high < 0xd800 || high >= 0xe000:
		return high, 6
	}
	low, ok := unit(b[6:])
	if !ok || low < 0xdc00 || low >= 0xe000 {
		return 0, 0
	}
	return 0x10000 + (high-0xd800)<<10 + (low - 0xdc00), 12
}

// unit reads backslash, u and four hexadecimal digits.
func unit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// number reads a number of JSON's grammar.
func (s *scanner) number() (member, bool) {
	start, form := s.i, whole
	if s.b[s.i] == '-' {
		s.i++
		form = number
	}
	first := s.i
	n := s.digits()
	if n == 0 || n > 1 && s.b[first] == '0' {
		return member{}, false
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		form = number
		if s.digits() == 0 {
			return member{}, false
		}
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		s.i++
		form = number
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if s.digits() == 0 {
			return member{}, false
		}
	}
	return member{raw: s.b[start:s.i], shape: form}, true
}

// digits takes as many digits as there are and returns how many.
func (s *scanner) digits() int {
	start := s.i
	for s.i < len(s.b) && s.b[s.i]-'0' <= 9 {
		s.i++
	}
	return s.i - start
}

// bytes returns what a text says. Without escapes these are the scanned bytes themselves.
func (m member) bytes() []byte {
	if !m.escaped {
		return m.raw
	}
	b := make([]byte, 0, len(m.raw))
	for i := 0; i < len(m.raw); {
		if m.raw[i] != '\\' {
			b = append(b, m.raw[i])
			i++
			continue
		}
		r, n := escape(m.raw[i:])
		b = utf8.AppendRune(b, r)
		i += n
	}
	return b
}

func (m member) string() string { return string(m.bytes()) }

// names is a set of member names; a record of the largest size can hold thousands.
type names struct {
	few  []string
	many map[string]struct{}
}

// add reports whether name is new.
func (n *names) add(name string) bool {
	if n.many == nil {
		for _, s := range n.few {
			if s == name {
				return false
			}
		}
		if n.few = append(n.few, name); len(n.few) > 16 {
			n.many = make(map[string]struct{}, 64)
			for _, s := range n.few {
				n.many[s] = struct{}{}
			}
		}
		return true
	}
	if _, ok := n.many[name]; ok {
		return false
	}
	n.many[name] = struct{}{}
	return true
}
