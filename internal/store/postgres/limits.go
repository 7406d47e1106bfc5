package postgres

// Limits of size; those of time are package session's.
const (
	keyCacheLimit = 1 << 17 // view key ids remembered a partition
	pendingChunk  = 512     // journal rows a query of Pending, as in its SQL
)

// StorageFormat is the format of what is stored, another number than the schema version.
const StorageFormat = 1
