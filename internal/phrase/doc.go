// Package phrase has the small pieces of what people read.
//
// Owns: a number with its noun; text, also of several lines, that is safe on one line of a terminal.
//
// Does not own: sentences (the packages that say them).
//
// Fails with: nothing.
package phrase
