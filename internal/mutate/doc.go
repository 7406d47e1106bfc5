// Command mutate removes the named guards, one at a time, in copies of the tree, and sees that a test says so.
//
//	go run ./internal/mutate            # every mutant; exit 1 below 100%
//	go run ./internal/mutate -smoke     # one mutant for each of a few guards
//	go run ./internal/mutate -only RE   # those whose guard or id matches
//	go run ./internal/mutate -docs      # docs/internals/guards.md, from guards.txt
//
// Owns: guards.txt, which lists the guards and how each is removed; the copies; and the verdict on each mutant. A mutant is
// killed when the named test fails with the named words. A test that hangs, a mutant that does not compile or whose text is no
// longer in the tree, and a test that fails without any mutant are failures of the campaign, not of the mutant.
//
// Does not own: the tests, which lie in the packages of the guards.
//
// Fails with: exit code 1 when a mutant was not killed or a canary was judged wrongly, 2 for wrong usage.
package main
