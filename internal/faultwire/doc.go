// Package faultwire stands between a client and a real PostgreSQL and breaks what tests choose to break.
//
// Owns: a proxy that reads the protocol as far as it must to know every statement (a connection, a prepared statement, a
// simple query such as COMMIT), the list of statements seen, and what happens to one of them: it never arrives, its answer
// never arrives, it arrives late, it waits for the test, or its answer carries the warning that nothing was replicated.
//
// Does not own: the server (pgtest), what a statement means, or what is right after a fault. Its own tests enumerate
// statements and faults over every kind of transaction that amends sends.
//
// Fails with: a failed test where the proxy itself cannot work; a fault that never met its statement is told by Fired.
package faultwire
