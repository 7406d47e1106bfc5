//go:build !race

package pace

// Raced tells whether the race detector is on.
const Raced = false
