// Package surface is everything that a store under test can do, by who does it, and the damage that a test can ask for.
//
// Owns: the interfaces that the suite of storetest needs, whole, where each service declares its part.
//
// Does not own: what the operations must do (storetest).
//
// Fails with: nothing; it holds no code.
package surface
