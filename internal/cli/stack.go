package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/embedded"
	"amends/internal/usage"
)

// stackFailed says that the supervised PostgreSQL ended by itself.
func stackFailed(stack *embedded.Stack) error {
	return fmt.Errorf("the embedded PostgreSQL ended by itself; its log is postgres.log below %s; starting again goes on from the data", stack.Dir())
}

func (a *app) stackFlags(cmd *cobra.Command, o *embedded.StackOptions) {
	f := cmd.Flags()
	f.StringVar(&o.Dir, "dir", "", "`directory` of the data (default: amends/stack in the user's data home)")
	f.IntVar(&o.PostgresPort, "postgres-port", 0, "`port` of PostgreSQL (0: that of last time, else the next free from 54329)")
	f.IntVar(&o.BrokerPort, "broker-port", 0, "`port` of the broker (0: that of last time, else the next free from 19092)")
	f.StringVar(&o.BinDir, "postgres-bin", "", "`directory` of PostgreSQL's programs (default: they are looked for)")
	f.BoolVar(&o.Reset, "reset", false, "remove the stack's data and begin anew")
}

func (a *app) dev() *cobra.Command {
	var o embedded.StackOptions
	cmd := &cobra.Command{
		Short: "Run the embedded PostgreSQL and broker alone; not for production",
		Long: `Runs a supervised PostgreSQL and an in-process Kafka-compatible broker on loopback, prints how to reach them, and stops them
on SIGTERM. Data is kept: the next start goes on, also after kill -9. A second start prints the endpoints of the first.`,
		Example: `  amends dev
  amends dev -dir /tmp/try -broker-port 29092 -o json`,
		Args: usage.NoArgs,
	}
	a.stackFlags(cmd, &o)
	a.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asJSON, err := a.JSON()
		if err != nil {
			return err
		}
		stack, err := a.startStack(cmd.Context(), o)
		if err != nil {
			return err
		}
		if err := a.printEndpoints(stack, asJSON); err != nil || stack.Attached() {
			return errors.Join(err, stack.Stop())
		}
		fmt.Fprintln(a.Stderr, "running; Ctrl-C stops it and keeps the data")
		select {
		case <-cmd.Context().Done():
		case <-stack.Failed():
			err = stackFailed(stack)
		}
		return errors.Join(err, stack.Stop())
	}
	return cmd
}

// startStack starts or attaches to the embedded stack and says what takes long.
func (a *app) startStack(ctx context.Context, o embedded.StackOptions) (*embedded.Stack, error) {
	o.Progress = func(line string) { fmt.Fprintln(a.Stderr, line) }
	stack, err := embedded.StartStack(ctx, o)
	if err != nil {
		return nil, err
	}
	if stack.Attached() {
		fmt.Fprintf(a.Stderr, "process %d runs the stack in %s; using it\n", stack.Endpoints().PID, stack.Dir())
		if o.PostgresPort != 0 || o.BrokerPort != 0 || o.BinDir != "" {
			fmt.Fprintln(a.Stderr, "-postgres-port, -broker-port and -postgres-bin change nothing of a stack that runs")
		}
	}
	return stack, nil
}

func (a *app) printEndpoints(stack *embedded.Stack, asJSON bool) error {
	e := stack.Endpoints()
	if asJSON {
		return json.NewEncoder(a.Stdout).Encode(e)
	}
	_, err := fmt.Fprintf(a.Stdout, `# PostgreSQL %s on %s, Kafka-compatible broker on %s (embedded; not for production)
export %s='%s'
export AMENDS_BROKERS='%s'
`, e.PostgreSQL, hostOf(e.DatabaseURL), strings.Join(e.Brokers, ","), target.DatabaseName, e.DatabaseURL, strings.Join(e.Brokers, ","))
	return err
}

// hostOf returns host and port of a database URL.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that is no URL"
	}
	return u.Host
}
