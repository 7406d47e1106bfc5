// Package scratch gives test helpers directories that go away with the test binary.
//
// Owns: temporary directories, and the shell process that removes one when this process has ended, by kill -9 too.
//
// Does not own: what runs in them; a server there must itself end with this process (package embedded).
//
// Fails with: errors of the operating system.
package scratch
