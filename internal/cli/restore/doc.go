// Package restore holds the commands that read history again: replay, rebuild and compare.
//
// Owns: their flags, words, JSON and exit codes, and the manifest file of a rebuild.
//
// Does not own: what they do (recovery), or finding what they work on (cli/target).
//
// Fails with: *usage.Error, *usage.Verdict for an answer that has a code of its own, and the errors of recovery.
package restore
