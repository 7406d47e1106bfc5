// Package importing is the command import: a file of rows and a mapping file become source records.
//
// Owns: the flags, the dry run and the execution, the report in text and JSON.
//
// Does not own: reading the file (intake), validation and publication (provision).
//
// Fails with: *usage.Error and *provision.RefusedFile for what is refused before anything is published (exit 2);
// *provision.LoadError for an import that ended early; the errors of store and broker.
package importing
