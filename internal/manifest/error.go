package manifest

import "fmt"

// Error says what a manifest or configuration may not be (S2). The user corrects the file; nothing was changed.
type Error struct {
	Member  string // the member's path, such as config.stock_keys[2].partition; empty for the file as a whole
	Problem string // what is wrong, such as "5 is out of range"
	Allowed string // what is allowed, such as "0..1"; empty where Problem says it
	Line    int    // line of the file, from 1; 0 where the fault has no place in a file
}

// Error returns one line naming the member, the problem and what is allowed.
func (e *Error) Error() string {
	s := "read manifest"
	if e.Line > 0 {
		s += fmt.Sprintf(": line %d", e.Line)
	}
	if e.Member != "" {
		s += ": " + e.Member
	}
	s += ": " + e.Problem
	if e.Allowed != "" {
		s += "; allowed: " + e.Allowed
	}
	return s
}
