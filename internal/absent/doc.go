// Package absent lets tests say what they could not have: a service, a program, a data set.
//
// Owns: the rule that an absence is named and counted, never silent, and that it is a failure where
// AMENDS_REQUIRE names its kind; and where test data lies.
//
// Does not own: the services themselves (pgtest, kafkatest).
//
// Fails with: a fatal test error where what is absent is required, a skipped test otherwise.
package absent
