package devstack

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"amends/internal/absent"
	"amends/internal/embedded/process"
	"amends/internal/pgtest"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestMain lets this binary be the process that Up starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == holdCommand {
		os.Exit(Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := process.KernelPort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// needed ends the test by name where the machine lacks what the services need.
func needed(t *testing.T) {
	t.Helper()
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			absent.Skip(t, absent.KindBroker, program, "install Java 17 and Maven")
		}
	}
	pgtest.Installed(t)
}

func answer(ctx context.Context, c Config) error {
	conn, err := pgx.Connect(ctx, "postgres://amends:"+password+"@127.0.0.1:"+strconv.Itoa(c.PostgresPort)+"/amends")
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS kept (n int); INSERT INTO kept VALUES (1)"); err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:" + strconv.Itoa(c.BrokerPort)))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Ping(ctx)
}

func TestUpAndDownKeepTheData(t *testing.T) {
	needed(t)
	dir, err := os.MkdirTemp("", "amends-d-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	c := Config{Dir: filepath.Join(dir, "s"), PostgresPort: freePort(t), BrokerPort: freePort(t)}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // a first run fetches Kafka
	defer cancel()
	defer func() {
		if err := Down(context.WithoutCancel(ctx), c.Dir, new(bytes.Buffer)); err != nil {
			t.Error(err)
		}
	}()
	for round := range 2 {
		var said bytes.Buffer
		for range 2 { // the second one finds them running
			if err := Up(ctx, c, &said); err != nil {
				t.Fatal(err)
			}
		}
		if strings.Count(said.String(), "starting") != 1 {
			t.Errorf("two ups said %q", said.String())
		}
		if err := answer(ctx, c); err != nil {
			t.Fatal(err)
		}
		if round == 1 {
			break
		}
		if err := Down(ctx, c.Dir, &said); err != nil {
			t.Fatal(err)
		}
		if err := answer(ctx, c); err == nil {
			t.Error("a service answers after down")
		}
	}
	conn, err := pgx.Connect(ctx, "postgres://amends:"+password+"@127.0.0.1:"+strconv.Itoa(c.PostgresPort)+"/amends")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var n int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM kept").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d rows, %v: the data of before the stop is not there", n, err)
	}
}

func TestUpNamesThePortInUse(t *testing.T) {
	needed(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()
	err = Up(t.Context(), Config{Dir: dir, PostgresPort: freePort(t), BrokerPort: port}, new(bytes.Buffer))
	if err == nil || !strings.Contains(err.Error(), strconv.Itoa(port)) {
		t.Errorf("up: %v", err)
	}
	if err := Down(t.Context(), dir, new(bytes.Buffer)); err != nil {
		t.Errorf("down where nothing runs: %v", err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"sideways"}, {"up", "a", "b"}, {"hold", "x", "y", "z"}} {
		var said bytes.Buffer
		if code := Main(t.Context(), args, new(bytes.Buffer), &said); code != 2 || !strings.Contains(said.String(), "usage") {
			t.Errorf("%q: code %d, said %q", args, code, said.String())
		}
	}
	if !errors.Is(dispatch(t.Context(), nil, nil), errUsage) {
		t.Error("no arguments")
	}
}
