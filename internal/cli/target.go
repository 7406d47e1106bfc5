package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"amends/internal/broker"
	"amends/internal/embedded"
	"amends/internal/manifest"
	"amends/internal/usage"
)

const (
	defaultBroker = "127.0.0.1:19092"
	giveUp        = 20 * time.Second // a command waits this long for a service that is away (S12)
	databaseName  = "AMENDS_DATABASE_URL"
)

// common are the flags that most commands share.
type common struct {
	manifest string
	brokers  usage.Addresses
	output   string
}

func (a *app) manifestFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.common.manifest, "manifest", "", "manifest `file`; without it that of the running embedded stack")
}

func (a *app) brokersFlag(cmd *cobra.Command) {
	cmd.Flags().Var(&a.common.brokers, "brokers", "broker `addresses`, host:port with commas (default "+defaultBroker+")")
}

func (a *app) outputFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&a.common.output, "output", "o", "text", "`form` of the answer on stdout: text or json")
}

// json reports whether the answer is wanted as JSON.
func (a *app) json() (bool, error) {
	switch a.common.output {
	case "json":
		return true, nil
	case "text":
		return false, nil
	}
	return false, usage.Errorf("-o %s: text or json", a.common.output)
}

// target is what a command works on.
type target struct {
	manifest *manifest.Manifest
	broker   broker.Options
	database string
}

// brokerOptions says how to reach the broker that was named, or else the given or the default one.
func (a *app) brokerOptions(otherwise []string) broker.Options {
	addresses := []string(a.common.brokers)
	if len(addresses) == 0 {
		addresses = otherwise
	}
	if len(addresses) == 0 {
		addresses = []string{defaultBroker}
	}
	return broker.Options{Brokers: addresses, ClientID: "amends"}
}

// target finds the manifest, the broker and the database: what was named, or all of the running embedded stack.
func (a *app) target() (*target, error) {
	t := &target{}
	var running embedded.Endpoints
	path := a.common.manifest
	if path == "" {
		e, ok, err := embedded.Running(a.Getenv("AMENDS_DIR"))
		if err != nil {
			return nil, err
		}
		if !ok || e.Manifest == "" {
			return nil, usage.Errorf("no manifest: name one with -manifest FILE or AMENDS_MANIFEST, or start one with: %s demo", a.Program)
		}
		running, path = e, e.Manifest
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, usage.Errorf("read manifest: %v", err)
	}
	if t.manifest, err = manifest.Parse(raw); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t.broker = a.brokerOptions(running.Brokers)
	if t.database, err = usage.Secret(a.Getenv, databaseName); err != nil {
		return nil, err
	}
	if t.database == "" {
		t.database = running.DatabaseURL
	}
	if t.database == "" {
		return nil, missingDatabase()
	}
	return t, nil
}

func missingDatabase() error {
	return usage.Errorf("%s is not set: export %s=postgres://USER:PASSWORD@HOST:PORT/DATABASE", databaseName, databaseName)
}
