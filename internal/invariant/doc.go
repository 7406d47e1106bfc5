// Package invariant stops the process where a state is impossible.
//
// Owns: That, the one place that panics for the product's own faults.
//
// Does not own: faults of users, records or services, which are values and errors everywhere.
//
// Fails with: a panic that names the broken invariant.
package invariant
