// Package failover lets the database under whole roles fail, in one process: promoted standbys with and without a lost tail,
// timeouts, full disks.
//
// Owns: what roles do when PostgreSQL comes back as another server, or refuses work for a while, on a real server and an
// in-process broker.
//
// Does not own: faults between driver and server (faultwire), processes that die (drill), schedules (sim).
//
// Fails with: a failed test; what a machine cannot have is named by package absent.
package failover
