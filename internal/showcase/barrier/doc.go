// Package barrier stands between one process and its PostgreSQL, so that the process can be killed at an exact place of a
// transaction.
//
// Owns: a forwarding proxy that reads the protocol as far as it must to know which statements a transaction ran, and that
// holds back one message: a statement or a COMMIT before the server sees it, or the answer to a COMMIT that took place.
//
// Does not own: the process and its end (crash), the server, or what is right afterwards.
//
// Fails with: errors of the network and of the database's address. It changes nothing of what it forwards, and what it
// holds back before the server never gets there: there is no way to let it go on. A process that lives on sees its
// connection as silent and gives it up by its own limits.
//
//	process ---- messages ---->  reads Bind and Query, forwards  ---->  server
//	        <---- answers -----  forwards, or keeps from COMMIT on  <--
package barrier
