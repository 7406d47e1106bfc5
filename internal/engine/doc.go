// Package engine takes decisions: from key states and records to what one transaction commits (S7, S8).
//
// Owns: the cached states of stock keys and their memory limit, the order of a decision's outputs, the trust status
// and the freezing of blocked keys, emission sequences, the snapshot format, and the rebuilding of a state from what
// was committed.
//
// Does not own: decoding (wire), evidence (authority), closes (fold), versions (diff), and when or whether a batch is
// committed (worker, store).
//
// Fails with: ErrExhausted, ErrHistory, ErrSnapshot, ErrMissing and ErrOrder. After any of them from Step, and after a
// commit that failed or whose outcome is unknown, the cached states are ahead of what is durable: the caller drops them.
//
// # A decision
//
//	record --- rejected? ---> evidence only
//	   |
//	authority.Record          class; what the transaction contributed before and contributes now
//	   |
//	fold.Days.Move            the touched days' sums and counts
//	   |
//	ambiguous, or counts disagree? --yes--> BLOCKED; outputs stay as published
//	   | no
//	diff.Reconcile            the touched days and what follows from them; the whole key if it was BLOCKED
//	   |
//	a close does not fit? ---------yes--> BLOCKED; outputs stay as published
//	   | no
//	balances and alerts by day, then READY if the key was BLOCKED or new
//
// States are a pure function of the records decided: cached, rebuilt from every decision, or rebuilt from a snapshot and
// the decisions after it, they decide the same bytes (I9).
package engine
