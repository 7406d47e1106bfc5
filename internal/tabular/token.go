package tabular

import (
	"errors"
	"io"
)

// token reads the next token of a dump, without white space and comments.
func (d *dump) token() (token, error) {
	for {
		c, err := d.byte()
		if errors.Is(err, io.EOF) {
			return token{kind: end, text: "the end of the file"}, nil
		}
		if err != nil {
			return token{}, err
		}
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		case c == '#', c == '-' && d.peek("-"):
			err = d.past("\n")
		case c == '/' && d.peek("*"):
			_, _ = d.byte() // it was just seen, and is no part of the end
			err = d.past("*/")
		case c == '\'':
			return d.quoted('\'', quote)
		case c == '"':
			return d.quoted('"', double)
		case c == '`':
			return d.quoted('`', name)
		case c == '[':
			return d.quoted(']', name)
		case inWord(c):
			return d.word(c)
		default:
			return token{kind: c, text: string(rune(c))}, nil
		}
		if err != nil {
			return token{}, err
		}
	}
}

// byte reads one byte and counts lines.
func (d *dump) byte() (byte, error) {
	c, err := d.in.ReadByte()
	if err == nil {
		d.size++
		if c == '\n' {
			d.line++
		}
	}
	return c, err
}

func (d *dump) peek(next string) bool {
	got, _ := d.in.Peek(len(next))
	return string(got) == next
}

// past reads away what ends with a text, or the file.
func (d *dump) past(text string) error {
	for at := 0; at < len(text); {
		d.limit.mark()
		c, err := d.byte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case c == text[at]:
			at++
		case c == text[0]:
			at = 1
		default:
			at = 0
		}
	}
	return nil
}

func inWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$' || c == '@' || c >= 0x80
}

// word reads letters and digits, and the point of a number.
func (d *dump) word(first byte) (token, error) {
	d.text = append(d.text[:0], first)
	digits := first >= '0' && first <= '9'
	for {
		next, err := d.in.Peek(1)
		if err != nil || !inWord(next[0]) && (!digits || next[0] != '.') {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return token{kind: word, text: string(d.text)}, err
		}
		d.text = append(d.text, next[0])
		_, _ = d.byte() // it was just seen
		if len(d.text) > MaxRow {
			return token{}, errLong
		}
	}
}

// escapes are the characters that a backslash makes of another one, in MySQL; any other stands for itself.
const escapes = "n\nt\tr\r0\x00b\bZ\x1a"

// quoted reads up to the closing quote, which is doubled where it is meant.
func (d *dump) quoted(close byte, kind byte) (token, error) {
	d.text = d.text[:0]
	begin := d.line
	for {
		c, err := d.byte()
		if errors.Is(err, io.EOF) {
			d.line = begin
			return token{}, &syntaxError{"a quote is opened here and not closed"}
		}
		if err != nil {
			if errors.Is(err, errLong) {
				d.line = begin
			}
			return token{}, err
		}
		if c == close {
			if !d.peek(string(rune(close))) {
				return token{kind: kind, text: string(d.text)}, nil
			}
			_, _ = d.byte() // it was just seen
		}
		if c == '\\' && d.options.Backslash && kind != name {
			if c, err = d.byte(); err != nil {
				continue // the end is met again
			}
			for i := 0; i < len(escapes); i += 2 {
				if c == escapes[i] {
					c = escapes[i+1]
					break
				}
			}
		}
		if d.passing {
			d.limit.mark()
			continue
		}
		d.text = append(d.text, c)
		if len(d.text) > MaxRow {
			d.line = begin
			return token{}, errLong
		}
	}
}
