package target

import (
	"amends/internal/broker"
	"amends/internal/embedded"
	"amends/internal/manifest"
	"amends/internal/usage"
)

// Parts are the manifest, the broker and the database each by itself, for a command that answers while some of them are missing.
type Parts struct {
	Manifest      *manifest.Manifest
	ManifestError error
	BrokerError   error
	DatabaseError error
	Database      string // its URL, a secret
	Stack         string // directory of the running embedded stack, "" where the database is another
	Broker        broker.Options
}

// Parts finds what Target finds, and says of each part why it is missing.
func (e *Env) Parts() *Parts {
	p := &Parts{}
	m, running, err := e.manifestOf()
	p.Manifest, p.ManifestError = m, err
	p.Broker, p.BrokerError = e.BrokerOptions(running.Brokers)
	p.Database, p.DatabaseError = usage.Secret(e.Getenv, DatabaseName)
	if p.DatabaseError == nil && p.Database == "" && running.DatabaseURL != "" {
		p.Database, p.Stack = running.DatabaseURL, e.Getenv("AMENDS_DIR")
		if p.Stack == "" {
			p.Stack, p.DatabaseError = embedded.DefaultDir()
		}
	}
	if p.DatabaseError == nil && p.Database == "" {
		p.DatabaseError = MissingDatabase()
	}
	return p
}
