// Package cli is the command line: one table of commands, two programs.
//
// Owns: the commands of amends (nested names) and amendsctl (the same under flat names), their flags and environment
// variables, the construction of every adapter, signals, and the one classifier that turns an error into an exit code.
//
// Does not own: what a command does. It reads flags, opens what is needed, calls provision, worker, delivery, verify or
// inspect, and prints: data on stdout, words on stderr, the cause of a failure on its last line.
//
// Fails with: exit codes. 0 done, PASS, clean stop; 1 operational failure, a restart is safe; 2 usage; 3 INCOMPLETE;
// 4 BLOCKED; 5 DRIFT; 6 UNAVAILABLE; 10 fenced; 11 integrity stop, an operator must look; 12 outcome unresolved;
// 13 schema, configuration or binding do not fit.
package cli
