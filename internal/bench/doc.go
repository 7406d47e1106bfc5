// Package bench measures amends beside what people would build instead, in one run on one machine.
//
// Owns: the workloads' preparation (history written straight into every store before a clock starts), the clocks, the
// comparison of what amends and the baseline published, and the ratios.
//
// Does not own: the peers (bench/serial, bench/trigger), the workloads (workload) or the roles (roles).
//
// Fails with: the errors of what it drives, wrapped; *DifferentError when the peers did not publish the same.
package bench
