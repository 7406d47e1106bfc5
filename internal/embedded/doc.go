// Package embedded supervises the services that a demonstration, a laptop or a test needs: a real PostgreSQL and a
// Kafka-compatible broker, under one data directory, with nothing installed beforehand but what the machine has.
//
// Owns: finding the PostgreSQL programs, data directories (made under a temporary name, then renamed), random
// passwords, ports, locks on the data, the file with the endpoints, and the life of the child processes. A child dies
// with the process that started it.
//
// Does not own: schemas, topics or records. It deletes no data directory; Reset removes a directory that this package
// itself made and marked, and no other.
//
// Fails with: *NotFoundError when no PostgreSQL can be had, *HeldError when another process holds the data, *PortError
// when an address is taken, *SpaceError when the volume is full. Every message says what, why and what to type.
//
// The broker is franz-go's kfake: it survives the death of its process, and no power loss. Neither part is for production.
package embedded
