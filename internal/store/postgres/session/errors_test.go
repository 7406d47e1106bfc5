package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"amends/internal/store"
)

// S12: only a service that is away is waited for.
func TestS12BeforeTellsWhatAnErrorMeans(t *testing.T) {
	server := func(code string) error { return &pgconn.PgError{Code: code, Severity: "ERROR", Message: "m"} }
	for name, c := range map[string]struct {
		err  error
		want error // nil: none of package store
	}{
		"connection reset":        {io.ErrUnexpectedEOF, store.ErrUnavailable},
		"reset by the peer":       {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, store.ErrUnavailable},
		"cannot connect":          {&pgconn.ConnectError{Config: &pgconn.Config{}}, store.ErrUnavailable},
		"connection closed":       {fmt.Errorf("exec: %w", pgconn.ErrConnClosed), store.ErrUnavailable},
		"client deadline":         {os.ErrDeadlineExceeded, store.ErrUnavailable},
		"a value does not scan":   {pgx.ScanArgError{ColumnIndex: 1, Err: errors.New("cannot scan")}, nil},
		"no row where one is due": {pgx.ErrNoRows, nil},
		"a fault of this program": {errors.New("7 answers to 8 statements"), nil},
		"deadline":                {context.DeadlineExceeded, store.ErrUnavailable},
		"admin shutdown":          {server("57P01"), store.ErrUnavailable},
		"crash shutdown":          {server("57P02"), store.ErrUnavailable},
		"starting up":             {server("57P03"), store.ErrUnavailable},
		"too many connections":    {server("53300"), store.ErrUnavailable},
		"idle in transaction":     {server("25P03"), store.ErrUnavailable},
		"no schema":               {server("3F000"), store.ErrNoSchema},
		"no table":                {server("42P01"), store.ErrNoSchema},
		"statement timeout":       {server("57014"), nil},
		"lock timeout":            {server("55P03"), nil},
		"deadlock":                {server("40P01"), nil},
		"disk full":               {server("53100"), nil},
		"refused credentials":     {server("28P01"), nil},
		"refused right":           {server("42501"), nil},
		"the caller gave up":      {context.Canceled, nil},
		"pooler":                  {errPooler, nil},
		"fsync off":               {errNotDurable, nil},
		"a fence stays a fence":   {store.ErrFence, store.ErrFence},
		"unknown stays unknown":   {store.ErrCommitUnknown, store.ErrCommitUnknown},
		"another server stays so": {store.ErrServerChanged, store.ErrServerChanged},
	} {
		err := Before("do it", c.err)
		if !errors.Is(err, c.err) {
			t.Errorf("%s: %v lost its cause", name, err)
		}
		for _, sentinel := range []error{store.ErrUnavailable, store.ErrNoSchema, store.ErrFence, store.ErrCommitUnknown, store.ErrServerChanged} {
			if errors.Is(err, sentinel) != (sentinel == c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
	}
	if Before("do it", nil) != nil {
		t.Error("nil is no error")
	}
}

// A right that is missing is granted by what grants prints, which is said once however often the error is wrapped.
func TestAMissingRightSaysWhatGrantsIt(t *testing.T) {
	err := Before("read", Before("find keys", &pgconn.PgError{Code: "42501", Severity: "ERROR", Message: "permission denied for table keys"}))
	const want = "read: find keys: ERROR: permission denied for table keys (SQLSTATE 42501); grants prints the statements that give each role its rights"
	if err.Error() != want || code(err) != "42501" {
		t.Errorf("%v, code %q", err, code(err))
	}
}

func TestCopyDataIsCutIntoMessagesAtRows(t *testing.T) {
	var c CopyStream
	for range 2 { // a stream is reused
		c.Reset()
		const rows = 3 * copyChunkBytes / 106
		for range rows {
			c.Row(1)
			c.Bytes(make([]byte, 100))
		}
		messages, data := 0, 0
		for b := c.finish(); len(b) > 0; messages++ {
			length := int(b[1])<<24 | int(b[2])<<16 | int(b[3])<<8 | int(b[4])
			if b[0] != 'd' || length+1 > len(b) || length > copyChunkBytes+200 {
				t.Fatalf("message %d: type %q, length %d of %d", messages, b[0], length, len(b))
			}
			data += length - 4
			b = b[1+length:]
		}
		if want := len(copySignature) + rows*106 + 2; messages != 3 || data != want {
			t.Fatalf("%d messages with %d bytes, want 3 with %d", messages, data, want)
		}
	}
}
