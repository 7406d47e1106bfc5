// Package stored says what is wrong with one stored row: a view row against its own envelope and position, a journal row
// against its source record, what the journal decided of an output against the view's row, receipts against each other, and the
// positions of a partition against each other and against a cut.
//
// Owns: the cut of a partition, the order of outputs in drift reports, the faults in words, and a configuration as the oracle
// takes it.
//
// Does not own: which rows are compared and what counts as drift (verify), or what must be published (oracle).
//
// Fails with: nothing; a fault is a text, empty where there is none.
package stored
