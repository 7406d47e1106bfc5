// Package provision creates what a namespace needs and fills its source.
//
// Owns: source create (a topic and its manifest), output create (a topic, its binding and the bound manifest), source
// load (validate the whole file, then publish it in order) and the checks of identity and binding that every role makes
// before it reads anything (S9, design sections 8 and 9).
//
// Does not own: topics (broker), the binding's rules (store), validation of a record (wire), or the guard (store).
//
// Fails with: *RefusedFile for a source file with bad lines, before anything is published; *LoadError for a load that
// ended early, with the last acknowledged line; ErrChanged for a file that changed between its two passes; ErrUnresolved
// for a binding whose outcome stays unknown; the errors of broker and store, wrapped.
//
// A source file is read twice. The first pass validates every line and keeps a checksum of each page of lines; the
// second publishes a page only when its bytes still have that checksum. So a file of any size needs the memory of one
// page, and nothing is published that was not validated.
package provision
