// Package campaign runs many simulated schedules and says whether they were enough.
//
// Owns: seeds and threads, the count of distinct schedules and of each kind of fault, floors, and the shrinking and
// saving of what failed.
//
// Does not own: what a schedule is (sim), or its answers (sim/choice).
//
// Fails with: *FloorError for a run that executed too little, *FailedError for schedules in which something did not hold.
package campaign
