package serial

// Violation is an invariant that did not hold: its id in the list of invariants, or a word for what else went wrong.
type Violation struct {
	Invariant string
	Detail    string
}

// Error names the invariant.
func (v *Violation) Error() string { return v.Invariant + ": " + v.Detail }
