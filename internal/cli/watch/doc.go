// Package watch asks a read command again and again.
//
// Owns: the flag -watch, when the next round begins, and how a round is shown: painted over the last one on a terminal,
// one after the other elsewhere.
//
// Does not own: what a round prints (the commands).
//
// Fails with: *usage.Error for an interval out of range, and what the first round fails with unless a service is away.
// Later failures are shown and waited for; being stopped is no failure.
package watch
