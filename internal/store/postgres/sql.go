package postgres

import (
	"embed"

	"amends/internal/invariant"
)

// Every statement is a file; its name is the prepared statement's name.
//
//go:embed sql/*.sql
var sqlFiles embed.FS

func statement(name string) string {
	b, err := sqlFiles.ReadFile("sql/" + name + ".sql")
	invariant.That(err == nil, "every statement named in the code is a file: "+name)
	return string(b)
}
