// Package tabular reads rows with named columns from text files of any size: CSV, and the INSERT statements of an SQL
// dump.
//
// Owns: delimiters, quoting, headers, encodings (UTF-8, windows-1252, iso-8859-1), byte order marks, line ends, and the
// line that each row and each fault begins at. One row is in memory at a time, at most MaxRow bytes of it.
//
// Does not own: what a column means (mapping), or the file (importing).
//
// Fails with: *Error for a file that is not what Options say, before or instead of its first row; a Problem in a row for
// a fault that one row has; the errors of the reader beneath, wrapped.
package tabular
