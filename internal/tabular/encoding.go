package tabular

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

// Encoding is how the text of a file is written as bytes.
type Encoding string

// The encodings.
const (
	UTF8        Encoding = "utf-8"
	Windows1252 Encoding = "windows-1252"
	Latin1      Encoding = "iso-8859-1"
)

// windows1252 is what bytes 0x80 to 0x9F mean there, 0 where nothing. The rest is as in iso-8859-1.
var windows1252 = [32]rune{
	0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017D, 0,
	0, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0, 0x017E, 0x0178,
}

// noText stands for a byte that the encoding does not have: it is no UTF-8 either, so that the check of the row finds it.
const noText = 0xFF

const mark = "\ufeff"

// decode returns the text of a file as UTF-8, without a byte order mark. UTF-8 is passed on unchecked.
func decode(in io.Reader, e Encoding) (*bufio.Reader, error) {
	raw := buffered(in)
	head, err := raw.Peek(4)
	if err != nil && err != io.EOF {
		return nil, wrapped(err)
	}
	switch {
	case bytes.HasPrefix(head, []byte{0xFE, 0xFF}), bytes.HasPrefix(head, []byte{0xFF, 0xFE}), bytes.IndexByte(head, 0) >= 0:
		return nil, &Error{Reason: "the file is written in UTF-16 or UTF-32; save it as UTF-8"}
	case bytes.HasPrefix(head, []byte(mark)) && e != UTF8:
		return nil, &Error{Reason: fmt.Sprintf("the file begins with the byte order mark of UTF-8, and the mapping says that it is %s", e)}
	case bytes.HasPrefix(head, []byte(mark)):
		_, _ = raw.Discard(len(mark)) // it was just seen
	}
	if e == UTF8 {
		return raw, nil
	}
	return buffered(&singleBytes{in: raw, windows: e == Windows1252}), nil
}

// singleBytes turns an encoding of one byte a character into UTF-8.
type singleBytes struct {
	in      *bufio.Reader
	windows bool
}

// Read returns the text of at least one byte of the file: a character is at most three bytes of UTF-8.
func (s *singleBytes) Read(p []byte) (int, error) {
	if len(p) < utf8.UTFMax {
		return 0, io.ErrShortBuffer
	}
	out := p[:0]
	for len(out)+utf8.UTFMax <= len(p) {
		if len(out) > 0 && s.in.Buffered() == 0 {
			break
		}
		b, err := s.in.ReadByte()
		if err != nil {
			return len(out), err
		}
		c := rune(b)
		if s.windows && b >= 0x80 && b < 0xA0 {
			if c = windows1252[b-0x80]; c == 0 {
				out = append(out, noText)
				continue
			}
		}
		out = utf8.AppendRune(out, c)
	}
	return len(out), nil
}

// mojibake reports whether text that was read byte by byte looks like UTF-8 that was read so: a lead byte with all of
// its continuations, as in "Ã©".
func mojibake(s string) bool {
	continued := 0
	for _, c := range s {
		b := singleByte(c)
		switch {
		case continued > 0 && b >= 0x80 && b < 0xC0:
			if continued--; continued == 0 {
				return true
			}
		case b >= 0xC2 && b < 0xE0:
			continued = 1
		case b >= 0xE0 && b < 0xF0:
			continued = 2
		default:
			continued = 0
		}
	}
	return false
}

// singleByte returns the byte that a character was, 0 for those that it cannot have been.
func singleByte(c rune) byte {
	if c < 0x100 {
		return byte(c)
	}
	for i, w := range windows1252 {
		if w == c {
			return byte(0x80 + i)
		}
	}
	return 0
}
