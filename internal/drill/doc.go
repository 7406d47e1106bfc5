// Package drill lets real processes fail: programs as they are built, Apache Kafka, PostgreSQL, SIGKILL, SIGSTOP and cut
// networks (tier T4).
//
// Owns: the drills, the streams of records that run through them, and the checker, which reads topics and SQL only.
//
// Does not own: what a package shows of its own failures, simulated schedules, or a wire between driver and server.
//
// Fails with: a failed test; what a machine cannot have is named by package absent. Durations are measured and printed as
// figures, never asserted.
package drill
