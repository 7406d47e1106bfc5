package broker_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"amends/internal/broker"
	"amends/internal/kafkatest"
)

const secret = "planted-5f0c"

// password always returns the same.
func password(p string) func() (string, error) { return func() (string, error) { return p, nil } }

// ask asks a broker once, under that security.
func ask(t *testing.T, brokers []string, s *broker.Security) error {
	t.Helper()
	admin, err := broker.Open(broker.Options{Brokers: brokers, Security: s, RequestTimeout: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	return admin.Ping(t.Context())
}

// refuses checks what an error says: its class, words of it, and that the secret is not among them.
func refuses(t *testing.T, err, class error, words string) {
	t.Helper()
	if !errors.Is(err, class) || !strings.Contains(fmt.Sprint(err), words) || strings.Contains(fmt.Sprint(err), secret) {
		t.Errorf("%v, want %v with %q", err, class, words)
	}
}

// secured is a broker that wants TLS and, with SASL, a password.
func secured(t *testing.T, a *kafkatest.Authority, options ...kfake.Opt) []string {
	t.Helper()
	server := &tls.Config{Certificates: []tls.Certificate{a.Issue("broker").Pair(t)}}
	return kafkatest.EmbeddedCluster(t, append(options, kfake.TLS(server))...).ListenAddrs()
}

// Reliability 5: each mechanism with its password over TLS, and what a wrong one, an unknown authority, a wrong name, a port without
// TLS and one with it lead to.
func TestTLSAndPasswords(t *testing.T) {
	t.Parallel()
	a := kafkatest.NewAuthority(t)
	var users []kfake.Opt
	for _, m := range []broker.Mechanism{broker.Plain, broker.ScramSHA256, broker.ScramSHA512} {
		users = append(users, kfake.Superuser(string(m), "amends", secret))
	}
	brokers := secured(t, a, append(users, kfake.EnableSASL())...)
	for _, m := range []broker.Mechanism{broker.Plain, broker.ScramSHA256, broker.ScramSHA512} {
		s := &broker.Security{TLS: true, CAFile: a.File, Mechanism: m, User: "amends", Secret: password(secret)}
		if err := ask(t, brokers, s); err != nil {
			t.Errorf("%s: %v", m, err)
		}
		wrong := &broker.Security{TLS: true, CAFile: a.File, Mechanism: m, User: "amends", Secret: password("wrong" + secret)}
		refuses(t, ask(t, brokers, wrong), broker.ErrUnavailable, "-kafka-sasl") // this broker says nothing and hangs up
	}
	stranger := kafkatest.NewAuthority(t)
	refuses(t, ask(t, brokers, &broker.Security{TLS: true, CAFile: stranger.File}), broker.ErrRefused, "-kafka-ca-file")
	refuses(t, ask(t, brokers, &broker.Security{TLS: true}), broker.ErrRefused, "-kafka-ca-file")
	named := kafkatest.EmbeddedCluster(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{a.Issue("other", "kafka-1").Pair(t)}})).ListenAddrs()
	refuses(t, ask(t, named, &broker.Security{TLS: true, CAFile: a.File}), broker.ErrRefused, "name the brokers as their certificates do")
	refuses(t, ask(t, brokers, &broker.Security{TLS: true, CAFile: a.File, Mechanism: broker.OAuthBearer, Secret: password(secret)}), broker.ErrRefused, "-kafka-sasl")
	if err := ask(t, brokers, nil); !errors.Is(err, broker.ErrRefused) && !errors.Is(err, broker.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "-kafka-tls") {
		t.Errorf("without TLS on a port that wants it: %v", err)
	}
	plain := kafkatest.Embedded(t)
	if err := ask(t, plain, &broker.Security{TLS: true, CAFile: a.File}); !errors.Is(err, broker.ErrRefused) && !errors.Is(err, broker.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "TLS") {
		t.Errorf("TLS on a port without it: %v", err)
	}
}

// A client certificate is shown, and one that the broker does not trust is refused.
// Shows F19.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	a, stranger := kafkatest.NewAuthority(t), kafkatest.NewAuthority(t)
	server := &tls.Config{Certificates: []tls.Certificate{a.Issue("broker").Pair(t)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool()}
	brokers := kafkatest.EmbeddedCluster(t, kfake.TLS(server)).ListenAddrs()
	mine, other := a.Issue("client"), stranger.Issue("client")
	if err := ask(t, brokers, &broker.Security{TLS: true, CAFile: a.File, CertFile: mine.CertFile, KeyFile: mine.KeyFile}); err != nil {
		t.Error(err)
	}
	refuses(t, ask(t, brokers, &broker.Security{TLS: true, CAFile: a.File, CertFile: other.CertFile, KeyFile: other.KeyFile}), broker.ErrRefused, "-kafka-cert-file")
	refuses(t, ask(t, brokers, &broker.Security{TLS: true, CAFile: a.File}), broker.ErrRefused, "-kafka-cert-file")

	// The files are replaced: the next connection shows the new certificate, and a wrong one is waited for once one was right.
	dir := t.TempDir()
	s := &broker.Security{TLS: true, CAFile: a.File, CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	for _, c := range []struct {
		show kafkatest.Certificate
		want error
	}{{other, broker.ErrRefused}, {mine, nil}, {other, broker.ErrUnavailable}, {a.Issue("next"), nil}} {
		for to, from := range map[string]string{s.CertFile: c.show.CertFile, s.KeyFile: c.show.KeyFile} {
			b, err := os.ReadFile(from)
			if err == nil {
				err = os.WriteFile(to, b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := ask(t, brokers, s); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.show.CertFile, err, c.want)
		}
	}
}

// Files are read for every new connection: what was right once is waited for while it is replaced, and what never was is refused.
// Shows F19.
func TestCredentialsAreReadAgain(t *testing.T) {
	t.Parallel()
	a := kafkatest.NewAuthority(t)
	server := &tls.Config{Certificates: []tls.Certificate{a.Issue("broker").Pair(t)}}
	cluster := kafkatest.EmbeddedCluster(t, kfake.TLS(server), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "amends", secret))
	var old atomic.Bool // whether what the file has is refused, in words as by Apache Kafka
	cluster.ControlKey(kmsg.SASLAuthenticate.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		refusal := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		refusal.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return refusal, nil, old.Load()
	})
	brokers := cluster.ListenAddrs()
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		t.Helper()
		old.Store(text == "wrong")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (string, error) {
		b, err := os.ReadFile(file)
		return string(b), err
	}
	s := &broker.Security{TLS: true, CAFile: a.File, Mechanism: broker.ScramSHA512, User: "amends", Secret: read, Rotates: true}
	write("wrong")
	refuses(t, ask(t, brokers, s), broker.ErrRefused, "SASL_AUTHENTICATION_FAILED")
	write(secret)
	if err := ask(t, brokers, s); err != nil {
		t.Fatal(err)
	}
	write("wrong")
	refuses(t, ask(t, brokers, s), broker.ErrUnavailable, "SASL_AUTHENTICATION_FAILED")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refuses(t, ask(t, brokers, s), broker.ErrUnavailable, "no such file")
	write(secret)
	if err := ask(t, brokers, s); err != nil {
		t.Error(err)
	}
	fixed := &broker.Security{TLS: true, CAFile: a.File, Mechanism: broker.ScramSHA512, User: "amends", Secret: read}
	if err := ask(t, brokers, fixed); err != nil {
		t.Fatal(err)
	}
	write("wrong") // one that cannot change is not waited for
	refuses(t, ask(t, brokers, fixed), broker.ErrRefused, "SASL_AUTHENTICATION_FAILED")
	stranger := kafkatest.NewAuthority(t)
	s.CAFile = filepath.Join(t.TempDir(), "none.pem")
	refuses(t, ask(t, brokers, s), broker.ErrUnavailable, "no such file")
	s.CAFile = stranger.File
	refuses(t, ask(t, brokers, s), broker.ErrUnavailable, "-kafka-ca-file")
}

// A topic whose creation was never asked for, because the connection for it was refused, is no unknown outcome.
func TestCreateTopicOverARefusedConnection(t *testing.T) {
	t.Parallel()
	a := kafkatest.NewAuthority(t)
	brokers := secured(t, a, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "amends", secret))
	var asked atomic.Int32
	s := &broker.Security{TLS: true, CAFile: a.File, Mechanism: broker.ScramSHA512, User: "amends", Rotates: true, Secret: func() (string, error) {
		if asked.Add(1) > 1 {
			return "", errors.New("the file is gone")
		}
		return secret, nil
	}}
	admin, err := broker.Open(broker.Options{Brokers: brokers, Security: s, RequestTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	_, err = admin.CreateTopic(t.Context(), "never", 1, 1) // looks by the first connection, creates by another
	refuses(t, err, broker.ErrUnavailable, "the file is gone")
	if errors.Is(err, broker.ErrUnknownOutcome) {
		t.Errorf("%v is an unknown outcome", err)
	}
}

// A secret that a mechanism sends as it is goes to no other machine without TLS, also where a broker names the address.
func TestSecretsStayOffTheNetwork(t *testing.T) {
	t.Parallel()
	for address, own := range map[string]bool{"127.0.0.1:9092": true, "localhost:9092": true, "[::1]:9092": true, "::1": true, "127.9.9.9": true,
		"kafka-1:9092": false, "10.0.0.1:9092": false, "[fe80::1]:9092": false, "localhost.example.org:9092": false} {
		if broker.Loopback(address) != own {
			t.Errorf("%s: loopback %v", address, !own)
		}
	}
	cluster := kafkatest.EmbeddedCluster(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "amends", secret))
	s := &broker.Security{Mechanism: broker.Plain, User: "amends", Secret: password(secret)}
	if err := ask(t, cluster.ListenAddrs(), s); err != nil {
		t.Errorf("on loopback: %v", err)
	}
	elsewhere := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, cluster.ListenAddrs()[0])
	}
	admin, err := broker.Open(broker.Options{Brokers: []string{"kafka-1:9092"}, Security: s, RequestTimeout: 5 * time.Second, Dial: elsewhere})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	refuses(t, admin.Ping(t.Context()), broker.ErrRefused, "without TLS; add -kafka-tls")
}
