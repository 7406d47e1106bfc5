// Package process runs child processes that end with this one, and guards the directories they work in.
//
// Owns: the tie between parent and child, exclusive locks on directories and what they tell about their holder, files
// written whole or not at all, free ports, and the errors about all of these.
//
// Does not own: what the children are.
//
// Fails with: *HeldError, *PortError, *SpaceError, *MissingError; each says what, why and what to type.
package process
