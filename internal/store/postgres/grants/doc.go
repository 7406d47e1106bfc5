// Package grants says which database role needs which privileges, and writes the statements that give exactly those.
//
// Owns: the roles worker, relay, view, audit and reader, and their privileges on the tables of schema amends.
//
// Does not own: the owner of the schema, who migrates, creates namespaces, binds outputs and rebuilds: that is the role
// that ran migrate up. Nor logins: a login role is made a member of one or more of these.
//
// Fails with: an error for a prefix that is no beginning of a role's name.
package grants
