// Package recovery reads history again: against what is recorded (replay), into a new namespace (rebuild), and one namespace
// against another (compare).
//
// Owns: S11. What a replay finds and the epochs it installs; the phases of a rebuild, each recorded before its work
// begins, and what a destination must be to be used; the comparison of two views by output and value.
//
// Does not own: decisions, publication and the view (worker, delivery, through roles), proof (verify), where a rebuild's
// record is kept (store/postgres/upkeep), or words and flags (cli/restore).
//
// Fails with: ErrDestination for a namespace or topic that is not this rebuild's, ErrUncertain for a topic whose creation
// nobody can tell, *StalledError where nothing moves, *broker.IdentityError and *broker.RangeError for a source that is
// not complete, and the errors of store, broker and roles, wrapped. Differences are values, not errors.
//
// The phases of a rebuild. Each arrow is one update of the rebuild's row, so that a killed rebuild is found at the phase
// whose work may be half done, and every phase can be done again:
//
//	 row and namespace,     topic created:      binding       source read        everything in     deep verification
//	 one transaction        id recorded         committed     to its end         the view          PASS or BLOCKED
//	------------------> [create] -----> [bind] ------> [refold] ------> [drain] ------> [verify] ------> [done]
//	                        |
//	                        | killed after the creation, or its reply was lost: the topic exists and no id is recorded.
//	                        v Nobody can tell whose it is: refused, kept, and another name is needed.
package recovery
