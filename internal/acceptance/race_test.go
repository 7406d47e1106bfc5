//go:build race

package acceptance

// raced: the race detector makes everything slower, so numbers are smaller.
const raced = true
