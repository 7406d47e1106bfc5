package checkup

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/store"
	"amends/internal/store/postgres/session"
)

//go:embed server.sql
var serverSQL string

//go:embed settings.sql
var settingsSQL string

//go:embed slots.sql
var slotsSQL string

//go:embed privileges.sql
var privilegesSQL string

// Server is what a server said. Settings are as people write them ("1min"). Skew is the server's clock less this machine's, known to
// within Trip, the time of one question.
type Server struct {
	Settings    map[string]string
	VersionText string
	Encoding    string
	Role        string
	Database    string
	Slots       []Slot
	Privileges  []Privilege // of the tables of schema amends, by name
	Bytes       int64       // of the database
	Connections int64       // of clients, this one included
	Standbys    int64       // that stream from it
	Skew        time.Duration
	Trip        time.Duration
	Version     int32 // 150000 and up
	Standby     bool
	Pooled      bool // a pooler stands between
	Schema      bool // there is a schema amends
	Temporary   bool // the role may make temporary tables
	Usable      bool // the role may use the schema, or make it where there is none
}

// Slot is a replication slot and how much WAL it keeps from being removed, in bytes.
type Slot struct {
	Name     string
	Status   string // reserved, extended, unreserved, lost
	Retained int64
	Active   bool
}

// Privilege is what the role may do with a table.
type Privilege struct {
	Table  string
	Select bool
	Insert bool
	Update bool
	Delete bool
}

// settings returns the names of the settings that are read.
func settings() []string {
	return []string{"fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names", "data_checksums", "autovacuum", "max_connections",
		"superuser_reserved_connections", "reserved_connections", "statement_timeout", "idle_session_timeout", "transaction_timeout"}
}

// Look asks the server at a URL, within the limit of one operation.
func Look(ctx context.Context, url string) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, session.OperationTimeout)
	defer cancel()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("look at database: %w: %w", store.ErrAddress, err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, session.Before("look at database", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), session.CleanupTimeout)
		defer cancel()
		_ = conn.Close(closing)
	}()
	s := &Server{Settings: map[string]string{}}
	if err := s.read(ctx, conn); err != nil {
		return nil, session.Before("look at database", err)
	}
	return s, nil
}

func (s *Server) read(ctx context.Context, conn *pgx.Conn) error {
	var pid uint32
	err := conn.QueryRow(ctx, serverSQL).Scan(&s.Version, &s.VersionText, &s.Encoding, &s.Standby, &pid, &s.Role, &s.Database, &s.Bytes,
		&s.Connections, &s.Schema, &s.Temporary, &s.Usable, &s.Standbys)
	if err != nil {
		return fmt.Errorf("read server: %w", err)
	}
	s.Pooled = pid != conn.PgConn().PID()
	if err := s.clock(ctx, conn); err != nil {
		return err
	}
	var name, value string
	rows, err := conn.Query(ctx, settingsSQL, settings())
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
			s.Settings[name] = value
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	var slots, privileges error
	s.Slots, slots = all(ctx, conn, slotsSQL, func(row pgx.CollectableRow) (v Slot, err error) {
		return v, row.Scan(&v.Name, &v.Active, &v.Status, &v.Retained)
	})
	s.Privileges, privileges = all(ctx, conn, privilegesSQL, func(row pgx.CollectableRow) (v Privilege, err error) {
		return v, row.Scan(&v.Table, &v.Select, &v.Insert, &v.Update, &v.Delete)
	})
	return errors.Join(slots, privileges)
}

// clock asks the time three times and keeps the quickest answer.
func (s *Server) clock(ctx context.Context, conn *pgx.Conn) error {
	for i := range 3 {
		var there time.Time
		began := time.Now()
		if err := conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&there); err != nil {
			return fmt.Errorf("read clock: %w", err)
		}
		if trip := time.Since(began); i == 0 || trip < s.Trip {
			s.Trip, s.Skew = trip, there.Sub(began.Add(trip/2))
		}
	}
	return nil
}

func all[T any](ctx context.Context, conn *pgx.Conn, sql string, one pgx.RowToFunc[T]) ([]T, error) {
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, one)
}
