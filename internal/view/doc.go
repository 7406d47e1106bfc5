// Package view decides, in memory and without I/O, what records of an output
// partition do to the materialized view (S9).
//
// A Decider holds one partition's records between its durable position and the
// last record read: whole repairs, which make the next page, and at most one
// incomplete repair, which waits for its rest.
//
//	Read -> [ whole repairs | pending repair | undecided ] -> Decide
//	             Page                                           |
//	               |            NeedRecords, NeedRows, PageFull, Stopped
//	               v
//	           Committed
//
// Rows are not loaded ahead. The first sight of an output at version v assumes
// that v-1 is stored, and the page says so in Before, which the store compares.
// A repetition and every violation are decided on rows that were loaded; a page
// that the store refused is decided again on its rows (Exact).
//
// Owns: the rules of S9 for records, the reasons of protocol violations, the cut of a page.
//
// Does not own: reading topics, rows and positions, or committing (delivery, store).
//
// Fails with: nothing. A record that breaks the protocol is a value, a Violation.
package view
