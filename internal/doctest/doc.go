// Package doctest holds the tests of the documents: that their commands run, that what they print is what is printed, that
// their links lead somewhere, and that the parts which code knows are what the code says. It has no code of its own.
//
// Owns: running the blocks of README.md, docs/start.md and docs/reference/schema.md; the generated parts of
// docs/internals/architecture.md and docs/reference; the rule that every member of a documented JSON is in its table.
//
// Does not own: the documents' words, or the contract (docs/reference/semantics.md).
//
// Fails with: the file, and what it says against what is. With AMENDS_UPDATE_DOCS=1 the generated parts are written anew.
package doctest
