package postgres

// Limits of size; those of time are package session's.
const (
	keyCacheLimit = 1 << 17 // view key ids remembered a partition
	pendingChunk  = 512     // journal rows a query of Pending returns, as in its SQL
	pendingWindow = 50_000  // source offsets that it looks through
	pendingLeap   = 1_000   // of them without outputs in a row are worth a mark
)

// StorageFormat is the format of what is stored, another number than the schema version.
const StorageFormat = 1
