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

// MigrationStep is one step with what applying it does.
type MigrationStep struct {
	SQL     string // as it is in this binary, "" where it is unknown
	Effects []MigrationEffect
	Migration
}

// MigrationEffect is what a step does to a table that is there before.
type MigrationEffect struct {
	Table string
	What  MigrationCost
	Rows  int64 // an estimate of the server, -1 if it has none
	Bytes int64 // of the table with its indexes
}

// MigrationCost says how long a step holds others up. It takes what the table's size asks for, except MigrationMoment.
type MigrationCost string

// The costs. Every step takes its locks until the whole migration is committed.
const (
	MigrationRewrite MigrationCost = "rewrites the table" // readers and writers wait
	MigrationScan    MigrationCost = "reads the table"    // to check a constraint; readers and writers wait
	MigrationIndex   MigrationCost = "builds an index"    // writers wait
	MigrationMoment  MigrationCost = "changes no row"     // readers and writers wait for a moment
)
