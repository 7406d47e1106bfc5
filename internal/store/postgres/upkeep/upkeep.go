package upkeep

import (
	"embed"

	"amends/internal/store/postgres/session"
)

// Statements holds the file of every statement of this package.
//
//go:embed sql/*.sql
var Statements embed.FS

// Upkeep writes for one namespace. Safe for concurrent use.
type Upkeep struct {
	pool      *session.Pool
	namespace int32
}

// New returns the upkeep of the namespace of that id.
func New(pool *session.Pool, namespace int32) *Upkeep {
	return &Upkeep{pool: pool, namespace: namespace}
}
