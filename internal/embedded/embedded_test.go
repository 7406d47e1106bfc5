package embedded_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"amends/internal/embedded"
	"amends/internal/embedded/process"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// roleEnv makes this test binary a process to be killed: the part named in it, on the directory in dirEnv.
const (
	roleEnv = "AMENDS_EMBEDDED_TEST_ROLE"
	dirEnv  = "AMENDS_EMBEDDED_TEST_DIR"
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleEnv)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(context.Background(), role, os.Getenv(dirEnv)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// play is the victim's life: it starts its part, tells where it is, and goes on until it is killed.
func play(ctx context.Context, role, dir string) error {
	switch role {
	case "postgres":
		p, err := embedded.StartPostgres(ctx, embedded.PostgresOptions{Dir: dir, AnyPort: true})
		if err != nil {
			return err
		}
		fmt.Println(p.PID(), p.URL())
	case "stack":
		s, err := embedded.StartStack(ctx, embedded.StackOptions{Dir: dir})
		if err != nil {
			return err
		}
		raw, err := json.Marshal(s.Endpoints())
		if err != nil {
			return err
		}
		fmt.Println(string(raw))
	case "broker":
		return produceForever(ctx, dir)
	}
	select {}
}

// produceForever prints the offset of each acknowledged record, and leaves a transaction open before it begins.
func produceForever(ctx context.Context, dir string) error {
	b, err := embedded.StartBroker(ctx, embedded.BrokerOptions{Dir: dir})
	if err != nil {
		return err
	}
	fmt.Println(b.Address())
	if err := openTransaction(ctx, b.Address(), "left open"); err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Address()), kgo.DefaultProduceTopic("plain"), kgo.ProducerLinger(0))
	if err != nil {
		return err
	}
	if err := ensureTopic(ctx, client, "plain"); err != nil {
		return err
	}
	for n := 0; ; n++ {
		r, err := client.ProduceSync(ctx, kgo.StringRecord(strconv.Itoa(n))).First()
		if err != nil {
			return err
		}
		fmt.Println(r.Offset, n)
	}
}

// openTransaction produces into the topic transactional and never ends the transaction.
func openTransaction(ctx context.Context, broker, value string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic("transactional"), kgo.TransactionalID("the-id"))
	if err != nil {
		return err
	}
	if err := ensureTopic(ctx, client, "transactional"); err != nil {
		return err
	}
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	_, err = client.ProduceSync(ctx, kgo.StringRecord(value)).First()
	return err
}

func ensureTopic(ctx context.Context, client *kgo.Client, topic string) error {
	_, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, topic)
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	return err
}

// victim is a process that a test kills.
type victim struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

func start(t *testing.T, role, dir string) *victim {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, dirEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	v := &victim{cmd: cmd, out: bufio.NewReader(out)}
	t.Cleanup(func() { v.kill() })
	return v
}

func (v *victim) line(t *testing.T) string {
	t.Helper()
	line, err := v.out.ReadString('\n')
	if err != nil {
		t.Fatalf("read from the process: %v", err)
	}
	return line
}

// kill ends the process by SIGKILL and returns what it had still said.
func (v *victim) kill() []byte {
	_ = v.cmd.Process.Kill()
	rest, _ := io.ReadAll(v.out)
	_ = v.cmd.Wait()
	return rest
}

// shortDir is a directory with a short path, removed at the end of the test.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "amends-e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove %s: %v", dir, err)
		}
	})
	return filepath.Join(dir, "d")
}

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // an installation by npm is among what it is for
	t.Cleanup(cancel)
	return ctx
}

// ownPort is a port of the kernel's choice, for what has to find its port free again later: the services of other tests, which begin
// to look at the standard one, do not take it meanwhile.
func ownPort(t *testing.T) int {
	t.Helper()
	port, err := process.KernelPort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}
