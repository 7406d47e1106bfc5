// Package crash runs a pipeline in processes of its own, kills them where it hurts, and shows what is durable.
//
// Owns: a namespace, its topics, a directory and the child processes of one run; where each process is held and killed;
// reading durable state before and after; the steps, what each has to show, and the report of the run.
//
// Does not own: holding a transaction (barrier), the report's forms (account), the roles, which are this program's own
// in child processes, or the services.
//
// Fails with: *StepError for a step that did not show what it should; *TakenError for a namespace, topic or directory that
// exists, before anything is made; errors of the services, wrapped, with the step in which they came.
//
// It touches nothing that it did not make. Whatever happens, its processes end with it: each dies with this process, and an
// ended context sends them SIGTERM. Namespace, topics and directory stay for people to look at.
package crash
