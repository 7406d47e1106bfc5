// Package manual is what the programs say of themselves beyond the help of one command.
//
// Owns: the help topics (the same text as their pages in docs/reference), the manual pages of every command and topic,
// and config print: every setting with where its value comes from.
//
// Does not own: the commands' own words (cli and the packages beneath it), or how settings are read (usage).
//
// Fails with: *usage.Error for a topic that does not exist, and what writing files fails with.
package manual
