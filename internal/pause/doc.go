// Package pause waits for a while, or until a context ends.
//
// Owns: the wait between two attempts or two looks, and the asking again of what passes by itself.
//
// Does not own: how long it is and how it grows; clocks that a simulation drives, which stand in its place where a caller takes
// a function.
//
// Fails with: the error of the context, or what was waited for then.
package pause
