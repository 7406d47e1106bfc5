// Package inspect shows what a namespace holds, from one snapshot.
//
// Owns: view show, in its two forms: JSON, whose schema only ever gains members, and a table for people.
//
// Does not own: the truth of what it shows (verify), or where it is kept (store).
//
// Fails with: the errors of store, wrapped. It writes nothing but its answer.
//
// A view can be larger than memory, so each list is a pass of its own over the rows of the one snapshot.
package inspect
