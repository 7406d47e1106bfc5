// Package row reads what PostgreSQL stores of decisions and statuses.
//
// Owns: the order of a journal row's columns as statements select them, a decision read from them, and status payloads as
// JSON text.
//
// Does not own: the statements (postgres), the binary form of values (session) or of the packed body (journal).
//
// Fails with: store.ErrIntegrity for what is damaged or missing, store.ErrSchema for another binary's format.
package row

// DateEpoch is the Day of 2000-01-01, from which PostgreSQL counts dates.
const DateEpoch = 730_120
