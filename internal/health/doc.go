// Package health says how a namespace is doing and what would break it later.
//
// Owns: its progress in one snapshot of the database beside the ends of its source topic, the verdict that status gives on it
// with its code (design section 8), and the checks of doctor with their hints.
//
// Does not own: what is read (store/postgres/reader, broker), or how it is shown (inspect). It proves nothing: verify does.
//
// Fails with: the errors of store, wrapped. A broker that is away is no failure: what it would say is unknown then.
package health
