// Package sim runs the production step machines of worker, relay, view and verifier through schedules of trouble, in
// memory and logical time, and checks the invariants after every effect.
//
// Owns: the store's and broker's clients that keep apart what became durable and what the caller saw; the actors and who
// goes next; what befalls them; healing, after which everything must converge and verify must say what is right.
//
// Does not own: the machines (worker, delivery, verify), the store (store/memory), the logs (sim/topic), what the effects
// must be (sim/serial), where decisions come from (sim/choice), or how many schedules there are (sim/campaign).
//
// Fails with: a Result that holds a Violation; an error only where a schedule could not begin.
//
// There is no goroutine and no clock in a schedule: every call of a machine that returns is an event, and others act
// while a call is on its way only by being called within it. So a list of answers is a schedule, and gives the same trace
// on every machine.
package sim
