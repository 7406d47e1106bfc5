// Package operate holds the commands of an operator's day: is it healthy, will it work, how far is it, what was bad input.
//
// Owns: the flags and codes of status, doctor, inspect and diagnostics, the web role of a process, and the adapters that they need.
//
// Does not own: what they say (health, diagnose, telemetry), or how it is shown (inspect, web).
//
// Fails with: *usage.Error, the errors of store and broker, and a *usage.Verdict where the answer has a code of its own. Nothing
// is written to the database or the broker.
package operate
