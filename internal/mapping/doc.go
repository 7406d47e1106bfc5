// Package mapping turns rows with named columns into assertions, as a mapping file says.
//
// Owns: the mapping file (YAML, checked name by name), exact decimal quantities at a namespace's quantity_scale, dates,
// what is a receipt, an issue, a count or a cancellation, revisions by column or in the order first seen, and numbering
// rows within a group.
//
// Does not own: reading rows (tabular), the rules of S3 on a record (wire), or the file and its summary (importing).
//
// Fails with: *Error, with the line of the mapping file where there is one; a reason in words for a row that says
// nothing, which is a value and no error; ErrTooMany past the bound on memory.
//
// Quantities are never floating point: digits are read into whole units of 10^-quantity_scale, and more decimal places
// than that are refused unless they are zeros.
package mapping
