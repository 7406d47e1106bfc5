package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"amends/internal/embedded/process"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Limits of the supervisor.
const (
	postgresFlag    = "-postgres-port"
	postgresPort    = 54329            // the first port tried for a new cluster
	lingerTimeout   = 5 * time.Second  // a killed server may hold its data that long
	readyTimeout    = 60 * time.Second // crash recovery included
	stopTimeout     = 30 * time.Second // a fast shutdown writes a checkpoint
	connectTimeout  = 5 * time.Second
	yieldTimeout    = 10 * time.Second // a server whose port another one took has ended by then
	portTries       = 5
	readyPollPeriod = 10 * time.Millisecond
)

// PostgresOptions say how to run a PostgreSQL server. The zero value of all but Dir will do.
type PostgresOptions struct {
	Dir         string            // holds the cluster, its password, port and log; made when absent
	Database    string            // made when absent; default amends
	Password    string            // of the user amends in a new cluster; default: random
	TemplateDir string            // the Dir of a stopped server to copy instead of running initdb
	BinDir      string            // the only place to look for the programs, when set
	CacheDir    string            // default: amends under the user's cache directory
	Settings    map[string]string // server settings beside the supervisor's own
	Progress    func(string)      // told what takes long or differs from what was expected; may be nil
	Port        int               // 1..65535: this one or *PortError; 0: the one of last time, else the next free
	AnyPort     bool              // a port of the kernel's choice, for tests
	NoSync      bool              // fsync=off: for tests that say so
	template    bool              // made once to be copied: initdb need not sync
	noNamespace bool              // as where the kernel allows none: for tests
}

// Postgres is a running server that ends with this process.
type Postgres struct {
	child    *process.Child
	lock     *process.Lock
	bins     Binaries
	dir      string
	database string
	password string
	port     int
}

// StartPostgres starts the server in o.Dir, making its cluster first where there is none. fsync is on, it listens on
// loopback alone, and it dies with this process. Errors: *NotFoundError, *HeldError, *PortError, *SpaceError; others
// carry the end of the server's log.
func StartPostgres(ctx context.Context, o PostgresOptions) (*Postgres, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("resolve directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	hold, err := process.Acquire(dir, "lock")
	if err != nil {
		return nil, err
	}
	p := &Postgres{dir: dir, lock: hold, database: o.Database}
	if p.database == "" {
		p.database = "amends"
	}
	if err := p.start(ctx, &o); err != nil {
		if p.child != nil {
			err = errors.Join(err, p.child.Stop(syscall.SIGQUIT, stopTimeout))
		}
		return nil, errors.Join(err, hold.Release())
	}
	return p, nil
}

func (p *Postgres) start(ctx context.Context, o *PostgresOptions) error {
	major, err := dataMajor(p.dir)
	if err != nil {
		return err
	}
	p.bins, err = Find(ctx, FindOptions{BinDir: o.BinDir, CacheDir: o.CacheDir, Progress: o.Progress, Major: major})
	if err != nil {
		return err
	}
	as, err := chooseRunAs(ctx, p.bins.program("postgres"), filepath.Join(p.dir, dataName), !o.noNamespace)
	if err != nil {
		return err
	}
	if err := ensureCluster(ctx, p.bins, as, p.dir, o); err != nil {
		return err
	}
	if err := as.own(filepath.Join(p.dir, dataName)); err != nil {
		return err
	}
	password, err := os.ReadFile(filepath.Join(p.dir, passwordName))
	if err != nil {
		return fmt.Errorf("read password: %w", err)
	}
	p.password = strings.TrimSpace(string(password))
	awaitPredecessor(ctx, filepath.Join(p.dir, dataName))
	return p.launch(ctx, as, o)
}

// launch starts the server and waits until it answers. A predecessor that was killed can linger and a free port can
// be lost to another process: both are tried again for a while.
func (p *Postgres) launch(ctx context.Context, as runAs, o *PostgresOptions) error {
	deadline := time.Now().Add(lingerTimeout)
	for try := 1; ; try++ {
		if err := p.choosePort(o); err != nil {
			return err
		}
		logStart, err := p.spawn(as, o)
		if err != nil {
			return err
		}
		err = p.awaitReady(ctx)
		if err == nil {
			return p.ensureDatabase(ctx)
		}
		said := process.LogSince(filepath.Join(p.dir, logName), logStart)
		if strings.Contains(said, "No space left on device") {
			return fmt.Errorf("start PostgreSQL: %w", &process.SpaceError{Dir: p.dir, Need: process.MinSpaceBytes})
		}
		lingering := strings.Contains(said, "postmaster.pid") || strings.Contains(said, "shared memory block")
		lost := o.Port == 0 && strings.Contains(said, "could not create any TCP/IP sockets")
		retry := lingering && time.Now().Before(deadline) || lost && try < portTries
		if p.child.Alive() || !retry || ctx.Err() != nil {
			return fmt.Errorf("start PostgreSQL %s in %s: %w\n%s", p.bins.Version, p.dir, err, process.LastLines(said, 8))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (p *Postgres) choosePort(o *PostgresOptions) (err error) {
	file := filepath.Join(p.dir, portName)
	switch {
	case o.Port != 0:
		p.port, err = process.ChoosePort(o.Port, true, postgresFlag)
	case o.AnyPort && p.port == 0:
		p.port, err = process.KernelPort()
	default:
		want := process.RememberedPort(file, postgresPort)
		p.port, err = process.ChoosePort(want, false, postgresFlag)
		if err == nil && p.port != want {
			process.Tell(o.Progress, fmt.Sprintf("port %d is in use: PostgreSQL listens on %d", want, p.port))
		}
	}
	if err != nil {
		return err
	}
	return process.WriteFile(file, []byte(strconv.Itoa(p.port)+"\n"))
}

// spawn starts the server's process and returns where its part of the log begins.
func (p *Postgres) spawn(as runAs, o *PostgresOptions) (int64, error) {
	log, start, err := process.OpenLog(filepath.Join(p.dir, logName))
	if err != nil {
		return 0, err
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(p.bins.program("postgres"), p.args(o)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "/", serverEnv(), log, log
	as.apply(cmd)
	p.child, err = process.Start(cmd, syscall.SIGQUIT)
	return start, err
}

// args are the server's. No Unix socket: TCP on loopback with a password serves, and a socket's path is limited to
// 107 bytes.
func (p *Postgres) args(o *PostgresOptions) []string {
	fsync := "on"
	if o.NoSync {
		fsync = "off"
	}
	settings := []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(p.port), "unix_socket_directories=", "fsync=" + fsync,
		"logging_collector=off", "log_checkpoints=off", "password_encryption=scram-sha-256",
	}
	var more []string
	for name, value := range o.Settings {
		more = append(more, name+"="+value)
	}
	slices.Sort(more)
	args := []string{"-D", filepath.Join(p.dir, dataName)}
	for _, s := range append(settings, more...) {
		args = append(args, "-c", s)
	}
	return args
}

// awaitReady waits until the server accepts a connection, which during recovery it does not. Another server may have taken the
// port at the same moment and answer instead: then this one ends.
func (p *Postgres) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := p.answers(ctx)
		if err == nil {
			return nil
		}
		var refused *pgconn.PgError
		wait := readyPollPeriod
		final := errors.As(err, &refused) && refused.Code != "57P03" // 57P03: it is starting
		if final {
			wait = yieldTimeout
		}
		select {
		case <-p.child.Done():
			return fmt.Errorf("the server ended: %w", p.child.Err())
		case <-ctx.Done():
			return fmt.Errorf("wait for the server: %w", errors.Join(ctx.Err(), err))
		case <-time.After(wait):
			if final {
				return fmt.Errorf("connect: %w", err)
			}
		}
	}
}

// answers returns nil when this server answers, and not another one on its port.
func (p *Postgres) answers(ctx context.Context) error {
	conn, err := p.connect(ctx, "postgres")
	if err != nil {
		return err
	}
	var data string
	err = conn.QueryRow(ctx, "SHOW data_directory").Scan(&data)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return err
	}
	own, err := os.Stat(filepath.Join(p.dir, dataName))
	found, missing := os.Stat(data)
	if err == nil && (missing != nil || !os.SameFile(own, found)) {
		return fmt.Errorf("port %d is that of the server of %s", p.port, data)
	}
	return nil
}

func (p *Postgres) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return pgx.Connect(ctx, p.DatabaseURL(database))
}

func (p *Postgres) ensureDatabase(ctx context.Context) error {
	conn, err := p.connect(ctx, "postgres")
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var exists bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", p.database).Scan(&exists)
	if err != nil {
		return fmt.Errorf("look for database: %w", err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{p.database}.Sanitize()); err != nil {
		return fmt.Errorf("create database %s: %w", p.database, err)
	}
	return nil
}

// URL is the connection string of the server's database, its password included.
func (p *Postgres) URL() string { return p.DatabaseURL(p.database) }

// DatabaseURL is the connection string of another database of the server.
func (p *Postgres) DatabaseURL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(superuser, p.password), Host: process.Address(p.port),
		Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// Port is the TCP port on 127.0.0.1.
func (p *Postgres) Port() int { return p.port }

// Address is host and port.
func (p *Postgres) Address() string { return process.Address(p.port) }

// Binaries are the programs that run.
func (p *Postgres) Binaries() Binaries { return p.bins }

// DataDir is the cluster's directory.
func (p *Postgres) DataDir() string { return filepath.Join(p.dir, dataName) }

// PID is the server's main process.
func (p *Postgres) PID() int { return p.child.PID() }

// Done is closed when the server has ended, for whatever reason.
func (p *Postgres) Done() <-chan struct{} { return p.child.Done() }

// Stop ends the server by a fast shutdown and gives the directory up.
func (p *Postgres) Stop() error {
	return errors.Join(p.child.Stop(syscall.SIGINT, stopTimeout), p.lock.Release())
}

// Kill ends the server's main process by SIGKILL, for drills, and gives the directory up. Its children notice and end
// shortly after.
func (p *Postgres) Kill() error { return errors.Join(p.child.Kill(), p.lock.Release()) }

// awaitPredecessor waits up to lingerTimeout for a server that an earlier process left behind: it got its signal, and
// may still be writing. A lock file whose process is another program by now, or a dead one that nobody has waited for,
// is put aside.
func awaitPredecessor(ctx context.Context, data string) {
	file := filepath.Join(data, "postmaster.pid")
	for deadline := time.Now().Add(lingerTimeout); time.Now().Before(deadline) && ctx.Err() == nil; {
		raw, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		line, _, _ := strings.Cut(string(raw), "\n")
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return // the server itself removes a stale file
		}
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err == nil && (!strings.Contains(string(stat), "(postgres)") || strings.Contains(string(stat), ") Z ")) {
			_ = os.Rename(file, file+".stale") // on failure the server says what is in the way
			return
		}
		time.Sleep(readyPollPeriod)
	}
}
