package grants

import (
	"fmt"
	"regexp"
	"strings"
)

// Role is a database role for one job. Every role may read all tables.
type Role struct {
	Name      string // without the prefix
	Does      string // the commands and roles of amends that it is enough for
	Tables    []Privilege
	Temporary bool // whether it creates temporary tables
}

// Privilege is what a role may do with a table, beside reading it.
type Privilege struct {
	Table string
	May   []string // INSERT, UPDATE, DELETE
}

// Roles returns the roles in the order in which data passes them.
func Roles() []Role {
	return []Role{
		{Name: "worker", Does: "the source role; source load and import", Tables: []Privilege{
			{"partitions", []string{"UPDATE"}}, {"keys", []string{"INSERT"}}, {"journal", []string{"INSERT"}},
			{"quarantine", []string{"INSERT"}}, {"snapshots", []string{"INSERT", "UPDATE"}}}},
		{Name: "relay", Does: "the relay role", Tables: []Privilege{
			{"relay_progress", []string{"UPDATE"}}, {"receipts", []string{"INSERT"}}, {"leases", []string{"UPDATE"}}}},
		{Name: "view", Does: "the view role", Temporary: true, Tables: []Privilege{
			{"view_progress", []string{"UPDATE"}}, {"view_keys", []string{"INSERT"}}, {"view_rows", []string{"INSERT", "UPDATE"}},
			{"protocol_errors", []string{"INSERT"}}, {"leases", []string{"UPDATE"}}}},
		{Name: "audit", Does: "the audit role; verify, whose result it records", Tables: []Privilege{
			{"verifications", []string{"INSERT", "DELETE"}}, {"audit_state", []string{"INSERT", "UPDATE"}}, {"audit_chunks", []string{"INSERT", "DELETE"}}}},
		{Name: "reader", Does: "every command that only reads; verify, whose result it cannot record"},
	}
}

var prefixes = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

// SQL returns the statements that create the roles, their names with a prefix of lower case letters, digits and
// underscores, and give each exactly its privileges. Running them again, and after an upgrade, is right.
func SQL(prefix string) (string, error) {
	if !prefixes.MatchString(prefix) {
		return "", fmt.Errorf("%q does not begin a role's name: up to 40 lower case letters, digits and underscores", prefix)
	}
	var b strings.Builder
	b.WriteString("-- Run as the owner of schema amends, who may create roles; again after each migrate up.\nBEGIN;\n")
	for _, r := range Roles() {
		name := prefix + r.Name
		fmt.Fprintf(&b, "\n-- %s: %s\n", name, r.Does)
		fmt.Fprintf(&b, "DO $$ BEGIN IF to_regrole('%s') IS NULL THEN CREATE ROLE %s NOLOGIN; END IF; END $$;\n", name, name)
		fmt.Fprintf(&b, "REVOKE ALL ON ALL TABLES IN SCHEMA amends FROM %s;\n", name)
		fmt.Fprintf(&b, "GRANT USAGE ON SCHEMA amends TO %s;\n", name)
		fmt.Fprintf(&b, "GRANT SELECT ON ALL TABLES IN SCHEMA amends TO %s;\n", name)
		for _, t := range r.Tables {
			fmt.Fprintf(&b, "GRANT %s ON amends.%s TO %s;\n", strings.Join(t.May, ", "), t.Table, name)
		}
		if r.Temporary {
			fmt.Fprintf(&b, "DO $$ BEGIN EXECUTE format('GRANT TEMPORARY ON DATABASE %%I TO %s', current_database()); END $$;\n", name)
		}
	}
	b.WriteString("\nCOMMIT;\n")
	return b.String(), nil
}
