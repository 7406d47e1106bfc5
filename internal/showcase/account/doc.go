// Package account is what a showcase reports: what it did, what it killed and when, and what durable state said before
// and after, all of it measured in that run.
//
// Owns: the report's values and its three forms: text, the documented JSON, and one self-contained page of HTML.
//
// Does not own: the run (crash), or the verification that it ends with (verify, report).
//
// Fails with: errors of the writer given.
package account
