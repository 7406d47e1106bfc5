//go:build !race

package engine_test

// scaled returns how many of n histories to run: all of them without the race detector.
func scaled(n int) int { return n }
