// Package kafkatest gives a test a Kafka broker and topics of its own.
//
// Owns: one Apache Kafka a test binary, started when the first test asks and ended with the binary, by kill -9 too; an
// in-process broker for a test; brokers of a test's own for drills with stops and kills; topics named amends-test-…,
// removed when their test ends.
//
// Does not own: other topics. With AMENDS_TEST_BROKERS the topics are made on those brokers and only those are removed.
//
// Fails with: a failed test when the named brokers cannot be reached or Kafka does not start; where Java or Maven is
// missing the test ends through absent.Skip.
package kafkatest
