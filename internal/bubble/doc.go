// Package bubble runs the production roles with the real Kafka client against an in-process broker in virtual time:
// thousands of seeded schedules a minute, each in a testing/synctest bubble of its own.
//
// Owns: the plan of a schedule (what is written, what goes wrong and when), the network, database connection and supervisor
// of each process, and what must hold during and after it.
//
// Does not own: the decisions that are right (sim/serial, verify), or faults of PostgreSQL (faultwire) and of real
// processes (drill).
//
// Fails with: a failed test that names the seed; docs/internals/testing.md says how to run one again.
package bubble
