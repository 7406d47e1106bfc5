// Package tidy holds the tests of the tree itself: which package may import which, which packages are pure, and the
// sizes and habits that keep a file readable. It has no code of its own.
//
// Owns: the import table, the purity of the decision layer, the limits on functions, files and packages, and the rules on
// comments, doc.go files, skips and state.
//
// Does not own: what the compiler, go vet and staticcheck find.
//
// Fails with: one line a problem, all of them in one run, each naming the place and the rule.
package tidy
