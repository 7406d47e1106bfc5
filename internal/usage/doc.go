// Package usage is how a command line is read and how it is refused.
//
// Owns: single-dash long flags, the environment variable of every flag, the configuration file under both, secrets that
// never come from a flag, help that begins with examples, and refusals that say what to type instead.
//
// Does not own: the commands (cli).
//
// Fails with: *Error, a wrong invocation (exit 2).
package usage
