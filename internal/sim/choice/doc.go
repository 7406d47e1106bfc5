// Package choice is the language of scenarios: a schedule is a list of small numbers, one for each point at which
// something could have gone another way.
//
// Owns: where the numbers come from (a seed, or a recorded list), the enumeration of every list of a small model, the
// shrinking of a list that fails, and the files in which lists are kept.
//
// Does not own: what a number means. 0 is always the way on which nothing is wrong, so that a shorter list and a list
// with more zeros are simpler schedules.
//
// Fails with: *SyntaxError for a file that is no scenario.
package choice
