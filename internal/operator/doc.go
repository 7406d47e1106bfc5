// Package operator holds the tests of an operator's day: every question of it is asked with the command that answers it, on
// real state, and the answer's first line, code and JSON are what the reference says. It has no code of its own.
//
// Owns: the JSON schemas of docs/reference/schemas being those of what is printed; the settings, manual pages, topics and
// completion of the command line.
//
// Does not own: what the answers mean (the tests of the packages that give them).
//
// Fails with: the command, and what it answered against what was to be answered.
package operator
