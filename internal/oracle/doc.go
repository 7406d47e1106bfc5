// Package oracle says what a namespace must hold, from raw source records alone (S10).
//
// It is a second, independent implementation of the contract: its own strict decoder and rejection order (S3), routing
// (S2), grouping and authority (S4), exact aggregation and derivation of balances, alerts and trust status (S5 to S7).
// It imports the vocabulary's types and limits only, and shares no code or stored state with what it judges. Records
// are added one by one, so that an audit extends a state instead of computing it again.
//
// Owns: the verdict on each source record, the expected outputs of each key, and the source coordinates behind them.
//
// Does not own: reading the source, cuts and statuses of a verification (verify), versions, sequences and envelopes,
// which depend on arrival and are judged against the outbox instead.
//
// Fails with: nothing; a record that does not validate is a verdict with its code.
package oracle
