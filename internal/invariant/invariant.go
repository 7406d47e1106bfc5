package invariant

// That panics with message unless ok. The message is a constant that says what should hold.
func That(ok bool, message string) {
	if !ok {
		panic("invariant broken: " + message)
	}
}
