// Package trail remembers how far an outbox was looked through.
//
// Records without outputs, rejected ones and duplicates, may follow each other by the million. Whoever looks for the next
// output walks over them once, and leaves a mark: no output from this sequence on lies below that source offset.
//
// Owns: marks, in memory, and which of them are worth keeping.
//
// Does not own: the outbox. A mark only shortens a search; without any, the search begins where the caller says.
//
// Fails with: nothing.
package trail
