// Package pgtest gives a test its own PostgreSQL database.
//
// Owns: one server a test binary, started when the first test asks and ended with the binary, by kill -9 too; a
// database a test, closed at its end; servers of a test's own for drills with stops and kills.
//
// Does not own: schemas or data. With AMENDS_TEST_DATABASE_URL the databases are made on that server and only those
// are dropped.
//
// Fails with: a failed test when the named server cannot be reached or the machine's PostgreSQL does not start; where
// there is no PostgreSQL the test ends through absent.Skip.
package pgtest
