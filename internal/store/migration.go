package store

// Migration is one step of a schema as this binary has it and as the database has it. Version counts from 1.
// A Stored that is not Checksum, or an Applied version that this binary lacks (Known false), is refused (ErrSchema).
type Migration struct {
	Name     string
	Version  int
	Checksum [32]byte
	Stored   [32]byte
	Known    bool
	Applied  bool
}
