package barrier_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"amends/internal/showcase/barrier"
)

// A server whose address asks for TLS is reached by TLS, its certificate checked; what the process says on loopback arrives.
func TestServerIsReachedByTLS(t *testing.T) {
	t.Parallel()
	for name, trusted := range map[string]bool{"trusted": true, "unknown authority": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			certificate, authority := selfSigned(t)
			if !trusted {
				_, authority = selfSigned(t)
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			heard := make(chan string, 1)
			go serve(listener, certificate, heard)
			q := url.Values{"sslmode": {"verify-full"}, "sslrootcert": {authority}}
			b, err := barrier.Listen("postgres://ann@" + listener.Addr().String() + "/ledger?" + q.Encode())
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			u, err := url.Parse(b.URL())
			if err != nil {
				t.Fatal(err)
			}
			conn, err := net.Dial("tcp", u.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			const startup = "\x00\x00\x00\x12\x00\x03\x00\x00user\x00ann\x00\x00"
			if _, err := conn.Write([]byte(startup)); err != nil {
				t.Fatal(err)
			}
			want := ""
			if trusted {
				want = startup
			}
			if got := <-heard; got != want {
				t.Errorf("the server heard %q, want %q", got, want)
			}
		})
	}
}

// An address that only prefers TLS reaches a server without it.
func TestServerWithoutTLSIsReachedWhereThatIsAllowed(t *testing.T) {
	t.Parallel()
	for mode, reached := range map[string]bool{"prefer": true, "require": false} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			heard := make(chan string, 1)
			go plain(listener, heard)
			b, err := barrier.Listen("postgres://ann@" + listener.Addr().String() + "/ledger?sslmode=" + mode)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			c, err := pgx.ParseConfig(b.URL())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := pgx.ConnectConfig(ctx, c); err == nil {
				t.Error("connected to a server that ends every connection")
			}
			_ = listener.Close()
			if got := strings.Contains(<-heard, "ledger"); got != reached {
				t.Errorf("the server heard of its database: %t, want %t", got, reached)
			}
		})
	}
}

// plain refuses TLS, tells what it hears else, and ends each connection.
func plain(listener net.Listener, heard chan<- string) {
	var all strings.Builder
	for {
		conn, err := listener.Accept()
		if err != nil {
			heard <- all.String()
			return
		}
		b := make([]byte, 1024)
		n, _ := conn.Read(b)
		if string(b[:n]) == "\x00\x00\x00\x08\x04\xd2\x16\x2f" {
			_, _ = conn.Write([]byte{'N'})
		} else {
			all.Write(b[:n])
		}
		_ = conn.Close()
	}
}

// serve takes one connection as a server with TLS does, and tells what it heard first inside.
func serve(listener net.Listener, certificate tls.Certificate, heard chan<- string) {
	conn, err := listener.Accept()
	if err != nil {
		heard <- err.Error()
		return
	}
	defer conn.Close()
	request := make([]byte, 8)
	if _, err := io.ReadFull(conn, request); err != nil || string(request) != "\x00\x00\x00\x08\x04\xd2\x16\x2f" {
		heard <- "no request for TLS"
		return
	}
	_, _ = conn.Write([]byte{'S'})
	b := make([]byte, 18)
	n, _ := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{certificate}}).Read(b)
	heard <- string(b[:n])
}

// selfSigned makes a certificate for loopback and the file of its authority.
func selfSigned(t *testing.T) (certificate tls.Certificate, authority string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	authority = filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, authority
}
