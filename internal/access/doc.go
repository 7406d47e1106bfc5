// Package access runs the program against an Apache Kafka that wants TLS and credentials.
//
// Owns: what commands and roles do with passwords, tokens and client certificates, right, wrong and rotated, and that no secret
// is to be seen anywhere.
//
// Does not own: each refusal by itself (broker), settings that make no sense (cli/target), the database's credentials (failover).
//
// Fails with: a failed test; what a machine cannot have is named by package absent.
package access
