package usage

// Verdict ends a command that has given its answer, with the code that the answer has.
type Verdict struct {
	Text string // the cause, one line
	Code int    // of design section 8
}

// Error returns the cause.
func (v *Verdict) Error() string { return v.Text }
