// Package roles runs the roles of one namespace in one process.
//
// Owns: building a worker, a relay and a view over one namespace handle and one broker, waking the relay when the worker
// beside it has committed, running an audit and a server with them, telling the latter why they are not ready, and ending all of
// them with the first error.
//
// Does not own: what the roles do (worker, delivery, lease), or opening the database and checking what must hold before
// a start (cli, provision).
//
// Fails with: the error of the role that ended first; the others are drained.
package roles
