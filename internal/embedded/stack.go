package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"amends/internal/embedded/process"
)

const (
	markName      = "amends-stack.json" // says that the directory is this package's own
	endpointsName = "endpoints.json"
	filesName     = "files"
	removedName   = ".removed-" // and a number: what a reset has taken out of use
	stackSchema   = 1
)

// StackOptions say where the stack lives. The zero value will do.
type StackOptions struct {
	Dir          string       // default: DefaultDir
	BinDir       string       // where PostgreSQL's programs are; default: see Find
	Progress     func(string) // told what takes long or differs from what was expected; may be nil
	PostgresPort int          // 0: the one of last time, else the next free from 54329
	BrokerPort   int          // 0: the one of last time, else the next free from 19092
	Reset        bool         // begin anew: see Reset
}

// Endpoints say how to reach a running stack. They are kept in a file of mode 0600: the URL holds the password.
type Endpoints struct {
	Since       time.Time `json:"since"`
	Manifest    string    `json:"manifest,omitempty"` // a path, once there is one
	DatabaseURL string    `json:"database_url"`
	PostgreSQL  string    `json:"postgresql"` // its version
	Brokers     []string  `json:"brokers"`
	Schema      int       `json:"schema"`
	PID         int       `json:"pid"` // of the process that holds the data
}

// Stack is PostgreSQL and a broker on one data directory: this process's own, or another's to which it is attached.
type Stack struct {
	lock      *process.Lock
	postgres  *Postgres
	broker    *Broker
	dir       string
	endpoints Endpoints
}

// StartStack starts both services. Where another process runs them on the same directory it attaches to them instead,
// which Attached tells. Errors: *HeldError when the other's services do not answer, and those of StartPostgres and StartBroker.
func StartStack(ctx context.Context, o StackOptions) (*Stack, error) {
	if err := errors.Join(process.CheckPort(o.PostgresPort, postgresFlag), process.CheckPort(o.BrokerPort, brokerFlag)); err != nil {
		return nil, err
	}
	dir, err := stackDir(o.Dir)
	if err != nil {
		return nil, err
	}
	if o.Reset {
		if err := Reset(dir); err != nil {
			return nil, err
		}
	}
	if err := claimDir(dir); err != nil {
		return nil, err
	}
	hold, err := process.Acquire(dir, "lock")
	if held := (*process.HeldError)(nil); errors.As(err, &held) {
		return attach(ctx, dir, held)
	}
	if err != nil {
		return nil, err
	}
	s := &Stack{dir: dir, lock: hold}
	if err := s.start(ctx, &o); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// start runs both starts side by side: PostgreSQL's first one takes most of the time.
func (s *Stack) start(ctx context.Context, o *StackOptions) error {
	if err := removeTaken(s.dir); err != nil {
		return err
	}
	broken := make(chan error, 1)
	go func() {
		var err error
		s.broker, err = StartBroker(ctx, BrokerOptions{Dir: filepath.Join(s.dir, "broker"), Port: o.BrokerPort, Progress: o.Progress})
		broken <- err
	}()
	var err error
	s.postgres, err = StartPostgres(ctx, PostgresOptions{Dir: filepath.Join(s.dir, "postgresql"), Port: o.PostgresPort,
		BinDir: o.BinDir, Progress: o.Progress})
	if err := errors.Join(err, <-broken); err != nil {
		return err
	}
	s.endpoints = Endpoints{Schema: stackSchema, PID: os.Getpid(), Since: time.Now().UTC().Truncate(time.Second),
		DatabaseURL: s.postgres.URL(), Brokers: []string{s.broker.Address()}, PostgreSQL: s.postgres.Binaries().Version}
	if before, err := readEndpoints(s.dir); err == nil {
		s.endpoints.Manifest = before.Manifest // the data is still that manifest's
	}
	return s.write()
}

func (s *Stack) write() error {
	raw, err := json.MarshalIndent(s.endpoints, "", "  ")
	if err != nil {
		return fmt.Errorf("write endpoints: %w", err)
	}
	return process.WriteFile(filepath.Join(s.dir, endpointsName), append(raw, '\n'))
}

// attach uses the services of the process that holds the directory. That process may be starting: it has a moment.
func attach(ctx context.Context, dir string, held *process.HeldError) (*Stack, error) {
	for deadline := time.Now().Add(lingerTimeout); ; {
		e, running, err := Running(dir)
		if err == nil && running {
			return &Stack{dir: dir, endpoints: e}, nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return nil, held
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Attached reports whether the services belong to another process; Stop leaves those alone.
func (s *Stack) Attached() bool { return s.lock == nil }

// Endpoints say how to reach the services.
func (s *Stack) Endpoints() Endpoints { return s.endpoints }

// Dir is the stack's directory.
func (s *Stack) Dir() string { return s.dir }

// File is the path for a file that belongs to the stack's data, such as a manifest: a reset removes it too.
func (s *Stack) File(name string) (string, error) {
	dir := filepath.Join(s.dir, filesName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	return filepath.Join(dir, name), nil
}

// SetManifest records the path of the manifest in the endpoints file, for commands without -manifest.
func (s *Stack) SetManifest(path string) error {
	if s.Attached() {
		return errors.New("record manifest: the stack belongs to another process")
	}
	s.endpoints.Manifest = path
	return s.write()
}

// Failed is closed when PostgreSQL has ended without being stopped. It is nil for an attached stack.
func (s *Stack) Failed() <-chan struct{} {
	if s.postgres == nil {
		return nil
	}
	return s.postgres.Done()
}

// Stop ends the services in order and gives the directory up. It may be called on a stack that started in part.
func (s *Stack) Stop() error {
	if s.Attached() {
		return nil
	}
	var failures []error
	if s.broker != nil {
		failures = append(failures, s.broker.Stop())
	}
	if s.postgres != nil {
		failures = append(failures, s.postgres.Stop())
	}
	return errors.Join(append(failures, s.lock.Release())...)
}

// Running reads the endpoints of the stack in dir (default: DefaultDir) and reports whether both services answer.
func Running(dir string) (Endpoints, bool, error) {
	dir, err := stackDir(dir)
	if err != nil {
		return Endpoints{}, false, err
	}
	e, err := readEndpoints(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Endpoints{}, false, nil
	}
	if err != nil {
		return Endpoints{}, false, err
	}
	if e.PID <= 0 || errors.Is(syscall.Kill(e.PID, 0), syscall.ESRCH) {
		return e, false, nil
	}
	postgres, err := hostOf(e.DatabaseURL)
	if err != nil {
		return e, false, err
	}
	for _, a := range append(slices.Clone(e.Brokers), postgres) {
		conn, err := net.DialTimeout("tcp", a, time.Second)
		if err != nil {
			return e, false, nil
		}
		conn.Close()
	}
	return e, true, nil
}

func readEndpoints(dir string) (Endpoints, error) {
	raw, err := os.ReadFile(filepath.Join(dir, endpointsName))
	if err != nil {
		return Endpoints{}, fmt.Errorf("read endpoints: %w", err)
	}
	var e Endpoints
	if err := json.Unmarshal(raw, &e); err != nil {
		return Endpoints{}, fmt.Errorf("parse %s: %w", filepath.Join(dir, endpointsName), err)
	}
	return e, nil
}
