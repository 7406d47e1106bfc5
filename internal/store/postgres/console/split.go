package console

import "strings"

// Split takes a text apart into its complete statements, without the semicolons that end them, and what follows the last
// of them. A semicolon within quotes, dollar quotes, comments or parentheses ends nothing. Empty statements are left out. Where a
// statement could begin, a backslash begins a command, which ends with its line, with or without a semicolon.
func Split(text string) (statements []string, rest string) {
	s := scanner{text: text}
	begin, depth := 0, 0
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case s.comment():
		case c == '\'' || c == '"':
			s.quoted(c)
		case c == '$' && s.dollar():
		case c == '\\' && !firstCode(text[begin:s.at]):
			line, _, _ := strings.Cut(text[s.at:], "\n")
			statements = append(statements, strings.TrimRight(line, "; \t\r"))
			s.at += len(line)
			begin, depth = s.at, 0
		case c == '(':
			depth++
			s.at++
		case c == ')':
			depth--
			s.at++
		case c == ';' && depth <= 0:
			if one := text[begin:s.at]; firstCode(one) {
				statements = append(statements, strings.TrimSpace(one))
			}
			s.at++
			begin, depth = s.at, 0
		default:
			s.at++
		}
	}
	if rest = text[begin:]; !firstCode(rest) {
		rest = ""
	}
	return statements, strings.TrimSpace(rest)
}

// firstCode reports whether there is more than space and comments.
func firstCode(text string) bool {
	s := scanner{text: text}
	s.space()
	return s.at < len(s.text)
}

// scanner walks over a text of SQL.
type scanner struct {
	text string
	at   int
}

// space skips white space and comments.
func (s *scanner) space() {
	for s.at < len(s.text) {
		if strings.IndexByte(" \t\r\n\f\v", s.text[s.at]) >= 0 {
			s.at++
			continue
		}
		if !s.comment() {
			return
		}
	}
}

// comment skips one comment, if there is one here. Those of C nest; an open one goes on to the end.
func (s *scanner) comment() bool {
	rest := s.text[s.at:]
	if strings.HasPrefix(rest, "--") {
		if n := strings.IndexByte(rest, '\n'); n >= 0 {
			s.at += n
		} else {
			s.at = len(s.text)
		}
		return true
	}
	if !strings.HasPrefix(rest, "/*") {
		return false
	}
	for depth := 0; s.at < len(s.text); {
		switch rest := s.text[s.at:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			s.at += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			s.at += 2
		default:
			s.at++
		}
		if depth == 0 {
			break
		}
	}
	return true
}

// quoted skips a literal or an identifier in quotes; in an escape string a backslash takes the next character with it.
func (s *scanner) quoted(quote byte) {
	escapes := quote == '\'' && s.at > 0 && s.text[s.at-1]|0x20 == 'e' && (s.at == 1 || !isWord(s.text[s.at-2]))
	s.at++
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '\\' && escapes:
			s.at += 2
		case c == quote && s.at+1 < len(s.text) && s.text[s.at+1] == quote:
			s.at += 2
		case c == quote:
			s.at++
			return
		default:
			s.at++
		}
	}
	s.at = len(s.text)
}

// dollar skips a dollar-quoted literal, if one begins here.
func (s *scanner) dollar() bool {
	if s.at > 0 && isWord(s.text[s.at-1]) {
		return false
	}
	stop := s.at + 1
	for stop < len(s.text) && isWord(s.text[stop]) && (stop > s.at+1 || s.text[stop] > '9') {
		stop++
	}
	if stop >= len(s.text) || s.text[stop] != '$' {
		return false
	}
	tag := s.text[s.at : stop+1]
	if n := strings.Index(s.text[stop+1:], tag); n >= 0 {
		s.at = stop + 1 + n + len(tag)
	} else {
		s.at = len(s.text)
	}
	return true
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}
