// Package acceptance tests the product from outside: programs as they are built, a real broker, a real database.
//
// Owns: the worked session, scenarios and cases on the whole path, refused starts, upgrades of populated schemas, and the
// table of docs/reference/coverage.md that says which test shows which scenario and case.
//
// Does not own: what a package shows of itself. Where a scenario needs no process it is tested beside the code.
//
// Fails with: a failed test; what a machine cannot have is named by package absent.
package acceptance
