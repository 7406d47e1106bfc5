package target

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/broker"
	"amends/internal/embedded"
	"amends/internal/invariant"
	"amends/internal/manifest"
	"amends/internal/usage"
)

const (
	defaultBroker = "127.0.0.1:19092"
	clientID      = "amends"
	// GiveUp is how long a command waits for a service that is away (S12).
	GiveUp = 20 * time.Second
	// DatabaseName is the variable that holds the database's URL.
	DatabaseName = "AMENDS_DATABASE_URL"
)

// Env is what every command of one invocation has: the process and the flags that most commands share.
type Env struct {
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Getenv   func(string) string
	Environ  func() []string // every NAME=value of the environment, nil where only Getenv is known
	Settings *usage.Settings // what the environment and the configuration file give, once flags are read
	Program  string          // as it was started, for the commands that are printed
	manifest string
	output   string
	brokers  usage.Addresses
	kafka    kafka
}

// ManifestFlag adds -manifest to a command.
func (e *Env) ManifestFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&e.manifest, "manifest", "", "manifest `file`; without it that of the running embedded stack")
}

// BrokersFlag adds -brokers to a command, with the flags that say how brokers are reached.
func (e *Env) BrokersFlag(cmd *cobra.Command) {
	cmd.Flags().Var(&e.brokers, "brokers", "broker `addresses`, host:port with commas (default "+defaultBroker+")")
	e.kafka.flags(cmd)
}

// SpareBrokersFlag adds -brokers to a command that asks the database alone, so that all commands of a session take the same flags.
func (e *Env) SpareBrokersFlag(cmd *cobra.Command) {
	cmd.Flags().Var(&e.brokers, "brokers", "broker `addresses`; none is asked, the flag is there for sessions that give every command the same ones")
}

// OutputFlag adds -o to a command.
func (e *Env) OutputFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&e.output, "output", "o", "text", "`form` of the answer on stdout: text or json")
	Complete(cmd, "output", FormText, FormJSON)
}

// RowsFlag adds -o to a command whose answer is rows; Form says which form is wanted.
func (e *Env) RowsFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&e.output, "output", "o", "text", "`form` of the answer on stdout: text, json or csv")
	Complete(cmd, "output", FormText, FormJSON, FormCSV)
}

// Complete names the values that a flag of a command takes, for the shell.
func Complete[V ~string](cmd *cobra.Command, flag string, values ...V) {
	list := make([]cobra.Completion, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
	invariant.That(err == nil, "the flag to complete is there: "+flag)
}

// Form is how an answer is written on stdout.
type Form string

// The forms. CSV is for answers that are rows.
const (
	FormText Form = "text"
	FormJSON Form = "json"
	FormCSV  Form = "csv"
)

// Form returns the form that the flag of RowsFlag names.
func (e *Env) Form() (Form, error) {
	switch f := Form(e.output); f {
	case FormText, FormJSON, FormCSV:
		return f, nil
	}
	return "", usage.Errorf("-o %s: text, json or csv", e.output)
}

// JSON reports whether the answer is wanted as JSON.
func (e *Env) JSON() (bool, error) {
	switch e.output {
	case "json":
		return true, nil
	case "text":
		return false, nil
	}
	return false, usage.Errorf("-o %s: text or json", e.output)
}

// Target is what a command works on.
type Target struct {
	Manifest *manifest.Manifest
	Broker   broker.Options
	Database string // its URL, a secret
}

// BrokerOptions says how to reach the brokers that were named, or else those of an embedded stack, which asks for nothing, or the
// default one. It fails with *usage.Error for settings that make no sense.
func (e *Env) BrokerOptions(stack []string) (broker.Options, error) {
	if len(e.brokers) == 0 && len(stack) > 0 {
		return StackOptions(stack), nil
	}
	o := broker.Options{Brokers: e.brokers, ClientID: clientID}
	if len(o.Brokers) == 0 {
		o.Brokers = []string{defaultBroker}
	}
	if e.kafka == (kafka{}) {
		return o, nil
	}
	running, found, err := embedded.Running(e.Getenv("AMENDS_DIR"))
	if err == nil && found && slices.Equal(o.Brokers, running.Brokers) {
		return o, nil // named, as amends dev prints it, beside settings that are for other brokers
	}
	o.Security, err = e.kafka.security(e.Getenv, o.Brokers)
	return o, err
}

// StackOptions says how to reach the broker of an embedded stack.
func StackOptions(addresses []string) broker.Options {
	return broker.Options{Brokers: addresses, ClientID: clientID}
}

// Manifest finds the manifest that was named, or that of the running embedded stack. No service is needed.
func (e *Env) Manifest() (*manifest.Manifest, error) {
	m, _, err := e.manifestOf()
	return m, err
}

func (e *Env) manifestOf() (*manifest.Manifest, embedded.Endpoints, error) {
	var running embedded.Endpoints
	path := e.manifest
	if path == "" {
		found, ok, err := embedded.Running(e.Getenv("AMENDS_DIR"))
		if err != nil {
			return nil, running, err
		}
		if !ok || found.Manifest == "" {
			return nil, running, usage.Errorf("no manifest: name one with -manifest FILE or AMENDS_MANIFEST, or start one with: %s demo", e.Program)
		}
		running, path = found, found.Manifest
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, running, usage.Errorf("read manifest: %v", err)
	}
	if len(bytes.TrimSpace(raw)) == 0 { // as a shell leaves it where the command before it failed
		return nil, running, usage.Errorf("read manifest: %s is empty; print it again: source create and output create say what went wrong", path)
	}
	m, err := manifest.Parse(raw)
	if err != nil {
		return nil, running, fmt.Errorf("%s: %w", path, err)
	}
	return m, running, nil
}

// Target finds the manifest, the broker and the database: what was named, or all of the running embedded stack.
func (e *Env) Target() (*Target, error) {
	m, running, err := e.manifestOf()
	if err != nil {
		return nil, err
	}
	t := &Target{Manifest: m}
	if t.Broker, err = e.BrokerOptions(running.Brokers); err != nil {
		return nil, err
	}
	if t.Database, err = usage.Secret(e.Getenv, DatabaseName); err != nil {
		return nil, err
	}
	if t.Database == "" {
		t.Database = running.DatabaseURL
	}
	if t.Database == "" {
		return nil, MissingDatabase()
	}
	return t, nil
}

// MissingDatabase is the refusal of a command that needs a database and was given none (exit 2).
func MissingDatabase() error {
	return usage.Errorf("%s is not set: export %s=postgres://USER:PASSWORD@HOST:PORT/DATABASE", DatabaseName, DatabaseName)
}
