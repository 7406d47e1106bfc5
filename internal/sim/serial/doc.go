// Package serial is the serial model: what one worker makes of a source without trouble, record by record, and the books
// that hold every effect of a simulation against it.
//
// Owns: the corpus of seeded histories with their decisions, outputs and exact envelope bytes; the invariants I1 to I10,
// I12, I15 and I18 as checks of single effects.
//
// Does not own: what a decision is (engine), what must be published (oracle), or who caused an effect (sim).
//
// Fails with: the engine's errors while a history is made; a Violation's words through Books.Fail.
package serial
