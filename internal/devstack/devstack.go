package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"amends/internal/embedded/process"
)

// password is that of compose.yaml, as the ports of Default are.
const password = "amends-local-only"

// Config says where the services' data is and on which ports of loopback they listen.
type Config struct {
	Dir          string
	PostgresPort int
	BrokerPort   int
}

// Default is the configuration for data in dir.
func Default(dir string) Config { return Config{Dir: dir, PostgresPort: 15432, BrokerPort: 19092} }

const (
	startTimeout = 10 * time.Minute // a first start fetches programs
	stopTimeout  = 90 * time.Second
	pollPeriod   = 100 * time.Millisecond
	logName      = "devstack.log"
	readyName    = "devstack.ready" // holds the number of the process whose services answer
	holdCommand  = "hold"           // of the process itself: directory, PostgreSQL's port, Kafka's port
	usage        = "usage: amends-devstack up|down [directory]   (default directory: .amends)"
)

// Main runs the command and returns its exit code: 0 done, 1 failed, 2 usage.
func Main(ctx context.Context, args []string, out, problems io.Writer) int {
	err := dispatch(ctx, args, out)
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(problems, usage)
		return 2
	case err != nil:
		fmt.Fprintln(problems, "amends-devstack:", err)
		return 1
	}
	return 0
}

var errUsage = errors.New("wrong arguments")

func dispatch(ctx context.Context, args []string, out io.Writer) error {
	dir := ".amends"
	switch {
	case len(args) == 4 && args[0] == holdCommand:
		c := Config{Dir: args[1]}
		if _, err := fmt.Sscan(args[2]+" "+args[3], &c.PostgresPort, &c.BrokerPort); err != nil {
			return errUsage
		}
		return hold(ctx, c, out)
	case len(args) == 2:
		dir = args[1]
	case len(args) != 1:
		return errUsage
	}
	switch args[0] {
	case "up":
		return Up(ctx, Default(dir), out)
	case "down":
		return Down(ctx, dir, out)
	}
	return errUsage
}

// Up starts the services unless they run, waits until both answer, and says how to reach them.
func Up(ctx context.Context, c Config, out io.Writer) error {
	var err error
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return fmt.Errorf("resolve directory: %w", err)
	}
	if err := os.MkdirAll(c.Dir, 0o711); err != nil { // PostgreSQL may run under another uid
		return fmt.Errorf("make directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	pid, err := holder(c.Dir)
	if err != nil {
		return err
	}
	log, from, err := process.OpenLog(filepath.Join(c.Dir, logName))
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	var ended <-chan error
	if pid == 0 {
		fmt.Fprintln(out, "starting Apache Kafka and PostgreSQL as background processes")
		if pid, ended, err = startHolder(c, log); err != nil {
			return err
		}
	}
	if err := awaitReady(ctx, c.Dir, pid, ended); err != nil {
		said := process.LogSince(filepath.Join(c.Dir, logName), from)
		return fmt.Errorf("start services: %w\n%s", err, process.LastLines(said, 8))
	}
	fmt.Fprintf(out, "Kafka       127.0.0.1:%d\nPostgreSQL  postgres://amends:%s@127.0.0.1:%d/amends\ndata in %s, process %d; stop: make down\n",
		c.BrokerPort, password, c.PostgresPort, c.Dir, pid)
	return nil
}

// holder is the process that holds the services of dir, 0 when there is none.
func holder(dir string) (int, error) {
	l, err := process.Acquire(dir, "lock")
	if held := (*process.HeldError)(nil); errors.As(err, &held) {
		if held.Holder.PID == 0 {
			return 0, fmt.Errorf("find the services' process: %w", err)
		}
		return held.Holder.PID, nil
	}
	if err != nil {
		return 0, err
	}
	return 0, l.Release()
}

// startHolder runs this program again, detached from the terminal. The channel tells its end.
func startHolder(c Config, log *os.File) (int, <-chan error, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, nil, fmt.Errorf("find own program: %w", err)
	}
	cmd := exec.Command(self, holdCommand, c.Dir, strconv.Itoa(c.PostgresPort), strconv.Itoa(c.BrokerPort))
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, nil, fmt.Errorf("start process: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return cmd.Process.Pid, ended, nil
}

func awaitReady(ctx context.Context, dir string, pid int, ended <-chan error) error {
	for {
		raw, err := os.ReadFile(filepath.Join(dir, readyName))
		if err == nil && strings.TrimSpace(string(raw)) == strconv.Itoa(pid) {
			return nil
		}
		select {
		case err := <-ended:
			return fmt.Errorf("the process ended, see %s: %w", filepath.Join(dir, logName), err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollPeriod):
		}
	}
}

// Down stops the services of dir in order and waits for their end. Their data stays.
func Down(ctx context.Context, dir string, out io.Writer) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("resolve directory: %w", err)
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(out, "no services run here")
		return nil
	}
	pid, err := holder(dir)
	if err != nil || pid == 0 {
		if err == nil {
			fmt.Fprintln(out, "no services run here")
		}
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	l, err := process.WaitLock(ctx, dir, "lock")
	if err != nil {
		return fmt.Errorf("wait for the end of process %d: %w", pid, err)
	}
	fmt.Fprintln(out, "stopped; the data stays in", dir)
	return l.Release()
}
