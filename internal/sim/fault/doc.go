// Package fault names the kinds of trouble that simulated schedules hold, and counts them.
//
// Owns: the kinds, their stable names, and counters.
//
// Does not own: when they happen (sim), or how many there must be (campaign).
//
// Fails with: nothing.
package fault
