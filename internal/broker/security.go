package broker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Mechanism is how a client says who it is (SASL).
type Mechanism string

// The mechanisms.
const (
	Plain       Mechanism = "PLAIN"
	ScramSHA256 Mechanism = "SCRAM-SHA-256"
	ScramSHA512 Mechanism = "SCRAM-SHA-512"
	OAuthBearer Mechanism = "OAUTHBEARER"
)

// Mechanisms lists them.
func Mechanisms() []Mechanism { return []Mechanism{Plain, ScramSHA256, ScramSHA512, OAuthBearer} }

// InClear reports whether the mechanism sends its secret as it is, so that only TLS hides it.
func (m Mechanism) InClear() bool { return m == Plain || m == OAuthBearer }

// Security says how connections are protected and who the client is. Every new connection reads Secret and the files anew; those
// that are open go on under what they were opened with. One value serves all clients of a process; it is not copied once used.
type Security struct {
	Secret    func() (string, error) // the password, of OAUTHBEARER the token, as it is now; required with a Mechanism
	Mechanism Mechanism              // "" for none
	User      string                 // of every mechanism but OAUTHBEARER
	CAFile    string                 // PEM, who may have signed a broker's certificate; "" for the system's authorities
	CertFile  string                 // PEM, the client's certificate, with KeyFile; "" for none
	KeyFile   string
	TLS       bool
	Rotates   bool        // Secret may return another one later, as one that is read from a file
	accepted  atomic.Bool // a broker has served these credentials
}

var (
	errUnread    = errors.New("what a connection needs could not be read")
	errHandshake = errors.New("no TLS connection")
	errShut      = errors.New("the connection was closed while TLS was set up")
	errInClear   = errors.New("the secret would travel readable")
)

// Check reads once what connections need: an error names the file that is missing or no use.
func (s *Security) Check() error {
	if s.Mechanism != "" {
		if _, err := s.Secret(); err != nil {
			return err
		}
	}
	if s.TLS {
		if _, err := s.config(""); err != nil {
			return err
		}
	}
	return nil
}

// options are what every client needs for this.
func (s *Security) options() ([]kgo.Opt, error) {
	if s == nil {
		return nil, nil
	}
	opts := []kgo.Opt{kgo.WithHooks(served{&s.accepted})}
	switch s.Mechanism {
	case "":
		return opts, nil
	case Plain:
		return append(opts, kgo.SASL(s.hidden(plain.Plain(func(context.Context) (plain.Auth, error) {
			secret, err := s.secret()
			return plain.Auth{User: s.User, Pass: secret}, err
		})))), nil
	case OAuthBearer:
		return append(opts, kgo.SASL(s.hidden(oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			secret, err := s.secret()
			return oauth.Auth{Token: secret}, err
		})))), nil
	case ScramSHA256:
		return append(opts, kgo.SASL(scram.Sha256(s.scram))), nil
	case ScramSHA512:
		return append(opts, kgo.SASL(scram.Sha512(s.scram))), nil
	}
	return nil, fmt.Errorf("open broker: unknown SASL mechanism %q", string(s.Mechanism))
}

func (s *Security) scram(context.Context) (scram.Auth, error) {
	secret, err := s.secret()
	return scram.Auth{User: s.User, Pass: secret}, err
}

func (s *Security) secret() (string, error) {
	secret, err := s.Secret()
	if err != nil {
		return "", fmt.Errorf("%w: %v", errUnread, err)
	}
	return secret, nil
}

// hidden keeps a mechanism from sending its secret over a network without TLS, also to an address that a broker told.
func (s *Security) hidden(m sasl.Mechanism) sasl.Mechanism {
	if s.TLS {
		return m
	}
	return loopbackOnly{m}
}

type loopbackOnly struct{ sasl.Mechanism }

func (m loopbackOnly) Authenticate(ctx context.Context, address string) (sasl.Session, []byte, error) {
	if !Loopback(address) {
		return nil, nil, fmt.Errorf("%w: %s to %s without TLS", errInClear, m.Name(), address)
	}
	return m.Mechanism.Authenticate(ctx, address)
}

// Loopback reports whether an address, with or without a port, is this machine's own.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return host == "localhost" || net.ParseIP(strings.Trim(host, "[]")).IsLoopback()
}

// config is TLS to a host as the files are now.
func (s *Security) config(host string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if s.CAFile != "" {
		pem, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("%w: %v", errUnread, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%w: %s holds no certificate in PEM", errUnread, s.CAFile)
		}
	}
	if s.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("%w: %s with %s: %v", errUnread, s.CertFile, s.KeyFile, err)
		}
		// Always sent: a broker that does not trust it says so, where one that got none could only say that it wants one.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return c, nil
}

// dial makes a connection, with TLS where it is wanted. Its errors after the TCP connection hide their causes from the client, which
// would try for as long as it may and tell in the end that time ran out.
func (s *Security) dial(ctx context.Context, network, address string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: DialTimeout}
	if s == nil || !s.TLS {
		return plain.DialContext(ctx, network, address)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	c, err := s.config(host)
	if err != nil {
		return nil, err
	}
	raw, err := plain.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	shaking, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	conn := tls.Client(raw, c)
	if err := conn.HandshakeContext(shaking); err != nil {
		_ = raw.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, handshake(address, err)
	}
	return &alerted{Conn: conn}, nil
}

// handshake says why there is no TLS connection, and what to do.
func handshake(address string, err error) error {
	var record tls.RecordHeaderError
	var verification *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("%w to %s: %v; name the authority that signed the broker's certificate by -kafka-ca-file", errHandshake, address, err)
	case errors.As(err, &name):
		return fmt.Errorf("%w to %s: %v; name the brokers as their certificates do", errHandshake, address, err)
	case errors.As(err, &verification):
		return fmt.Errorf("%w to %s: %v; the broker needs another certificate", errHandshake, address, err)
	case errors.As(err, &record):
		return fmt.Errorf("%w to %s: %v; this port has no TLS: name the one that has, or leave -kafka-tls out", errHandshake, address, err)
	}
	if told := alert(err); errors.Is(told, errHandshake) {
		return told
	}
	return fmt.Errorf("%w to %s: %v; if it stays so, the port may have no TLS", errShut, address, err)
}

// alerted is a TLS connection whose peer may answer by an alert, as a broker that does not accept a certificate does after the client
// believes the handshake done. Once the peer has said something else an alert is a connection lost, as any.
type alerted struct {
	net.Conn
	heard atomic.Bool
}

func (c *alerted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.Store(true)
	}
	if c.heard.Load() {
		return n, err
	}
	return n, alert(err)
}

// alert returns an error of its own for the peer's alert, any other as it is.
func alert(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return fmt.Errorf("%w: the broker refuses it: %v; -kafka-cert-file and -kafka-key-file name a certificate that it trusts", errHandshake, op.Err)
	}
	return err
}

// served notes that a broker answered a request that is no part of opening a connection.
type served struct{ accepted *atomic.Bool }

func (h served) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	opening := []int16{kmsg.ApiVersions.Int16(), kmsg.SASLHandshake.Int16(), kmsg.SASLAuthenticate.Int16()}
	if err == nil && !h.accepted.Load() && !slices.Contains(opening, key) {
		h.accepted.Store(true)
	}
}

// changing reports whether a refusal is waited for: credentials that were right before and are read from files are being rotated,
// the broker's and the reader's in some order, as those of the database.
func (s *Security) changing(err error) bool {
	switch {
	case s == nil || !s.accepted.Load():
		return false
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return s.Rotates
	}
	return errors.Is(err, errHandshake) && (s.CAFile != "" || s.CertFile != "")
}

// opening reports whether err kept a connection from serving requests, so that none was sent.
func opening(err error) bool {
	for _, early := range []error{errUnread, errHandshake, errShut, errInClear, kerr.SaslAuthenticationFailed, kerr.UnsupportedSaslMechanism, kerr.IllegalSaslState} {
		if errors.Is(err, early) {
			return true
		}
	}
	return false
}

// advice says what to do about a refusal, or about a connection that ends as one without TLS or credentials does; "" for others.
func advice(err error) string {
	var early *kgo.ErrFirstReadEOF
	switch {
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "; -kafka-user and AMENDS_KAFKA_PASSWORD or AMENDS_KAFKA_TOKEN, or their files, say who this is"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "; -kafka-sasl names a mechanism that this listener does not offer"
	case errors.Is(err, kerr.IllegalSaslState), errors.Is(err, kerr.SecurityDisabled):
		return "; -kafka-sasl says how this listener wants clients to authenticate"
	case errors.Is(err, errInClear):
		return "; add -kafka-tls"
	case tlsExpected(err):
		return "; this port wants TLS: add -kafka-tls"
	case errors.As(err, &early), errors.Is(err, io.EOF):
		return "; if it stays so: -kafka-tls and -kafka-sasl say how this listener is spoken to"
	}
	return ""
}

// tlsExpected reports whether the answer was an alert of TLS to a client that does not use it. The client says so in words only.
func tlsExpected(err error) bool { return strings.Contains(err.Error(), "a tls alert record") }
