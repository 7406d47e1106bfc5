//go:build race

package engine_test

// scaled returns how many of n histories to run: a tenth under the race detector.
func scaled(n int) int { return n / 10 }
