// Package phrase has the small pieces of what people read.
//
// Owns: a number with its noun; a quantity at its scale; text, also of several lines, that is safe on one line of a terminal.
//
// Does not own: sentences (the packages that say them).
//
// Fails with: nothing.
package phrase
