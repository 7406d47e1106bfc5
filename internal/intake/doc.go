// Package intake reads a file of rows, with its mapping, as source records, and remembers how far they were published.
//
// Owns: the passes over the file, what a dry run says about it (Survey), transactions that are said twice differently,
// and the progress file from which an import goes on (Journal).
//
// Does not own: reading rows (tabular), what they mean (mapping), validation and publication (provision), or the command.
//
// Fails with: *Refused for a file, a mapping or a progress file that cannot be used, before anything is published;
// ErrComplete for an import that was finished before; mapping.ErrTooMany.
//
// Memory does not grow with the file: one page of rows, and about 20 bytes for each transaction whose repetition is
// looked for (MaxRepeats of them) or whose rows are counted (mapping.MaxSeen of them).
package intake
