// Package pace says how much of a long test to run.
//
// Owns: the one divisor of repetitions: ten under the race detector, where each step takes ten times as long, ten with
// -short, and both together a hundred.
//
// Does not own: which tests are long, or that a smaller run still reaches what it must (each test counts that).
//
// Fails with: nothing.
package pace
