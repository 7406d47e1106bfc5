// Package proof holds the commands that keep proving the view.
//
// Owns: amends audit, what it says on stdout, and opening an audit for the role of the same name.
//
// Does not own: the audit (audit), verify, which is of package cli, or opening databases and topics (cli/target).
//
// Fails with: *usage.Error, *usage.Verdict with the code of the last cycle's status for -once, and what audit and
// cli/target fail with.
package proof
