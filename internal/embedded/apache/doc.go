// Package apache runs a real Apache Kafka of one node without containers: for tests, and for laptops that want it.
//
// Owns: bringing Kafka's programs through Maven into the cache, once for all processes of the user; its configuration,
// ports and logs; the broker's process, which ends with this one.
//
// Does not own: topics or records. It deletes no logs.
//
// Fails with: *process.MissingError without Java or Maven, *process.HeldError, *process.PortError, and errors that carry the end
// of the broker's log.
package apache
