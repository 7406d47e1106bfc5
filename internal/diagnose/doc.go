// Package diagnose finds what was wrong with the input of a namespace, and what would put it right.
//
// Owns: rejected records with their exact bytes, the problems that block keys and conflicts that a higher revision settled, each
// with its candidates, and the record that would resolve it, ready to be loaded.
//
// Does not own: what a conflict is (authority), or how it is shown (inspect). It reads the database alone.
//
// Fails with: the errors of store, wrapped; ErrPlace for a place that no page ends at.
package diagnose
