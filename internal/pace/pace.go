package pace

import "testing"

// Of returns how many of n repetitions to run here, at least 1.
func Of(n int) int {
	if Raced {
		n /= 10
	}
	if testing.Short() {
		n /= 10
	}
	return max(n, 1)
}
