// Package target is what a command works on: the manifest, the broker and the database that were named, or those of the
// running embedded stack.
//
// Owns: the flags that most commands share, what they say about reaching the brokers, and opening what they name.
//
// Does not own: the commands (cli and the packages beneath it), or reading flags (usage).
//
// Fails with: *usage.Error for what was not named, *manifest.Error, and the errors of store and broker; a service that is
// away is waited for until the context ends.
package target
