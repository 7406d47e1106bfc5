package kafkatest

import (
	"context"
	"crypto/tls"
	"os"
	"testing"
	"time"

	"amends/internal/embedded/apache"
	"amends/internal/scratch"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Secured is an Apache Kafka of one test's own that is also reached by TLS: with passwords and tokens on one listener, by client
// certificates on another.
type Secured struct {
	t         testing.TB
	k         *apache.Kafka
	Authority *Authority // signed the broker's certificate, and signs those of clients that it trusts
}

// The listeners.
const (
	passwords    = "PASSWORDS"
	certificates = "CERTIFICATES"
	// reauthenticate is for how many milliseconds a password is good on an open connection.
	reauthenticate = "3000"
)

// SecuredServer starts it. Users are made by SetPassword, and asked for their password again every 3 s; a token is an unsecured JWT.
func SecuredServer(t testing.TB) *Secured {
	t.Helper()
	s := &Secured{t: t, Authority: NewAuthority(t)}
	own := map[string]string{"ssl.keystore.type": "PEM", "ssl.keystore.location": s.Authority.Issue("broker").Bundle,
		"ssl.truststore.type": "PEM", "ssl.truststore.location": s.Authority.File}
	with := func(more map[string]string) map[string]string {
		for k, v := range own {
			more[k] = v
		}
		return more
	}
	listeners := []apache.Listener{
		{Name: passwords, Protocol: "SASL_SSL", Settings: with(map[string]string{"sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
			"scram-sha-512.connections.max.reauth.ms": reauthenticate, "scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
			"oauthbearer.sasl.jaas.config": `org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`})},
		{Name: certificates, Protocol: "SSL", Settings: with(map[string]string{"ssl.client.auth": "required"})},
	}
	dir, err := scratch.Dir("amends-kafkatest-")
	if err != nil {
		t.Fatal(err)
	}
	if s.k, err = start(0, dir, listeners...); err != nil {
		refuse(t, err)
	}
	t.Cleanup(func() {
		if err := s.k.Kill(); err != nil {
			t.Errorf("end broker: %v", err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Logf("remove broker: %v", err)
		}
	})
	return s
}

// Plain is the address without TLS, for the test itself.
func (s *Secured) Plain() string { return s.k.Address() }

// Passwords is the address of SASL_SSL: SCRAM-SHA-512 and OAUTHBEARER.
func (s *Secured) Passwords() string { return s.k.Listener(passwords) }

// Certificates is the address of SSL with a client certificate.
func (s *Secured) Certificates() string { return s.k.Listener(certificates) }

// SetPassword gives a user of SCRAM-SHA-512 a password, the first one too. When it returns, the broker takes this one and no other.
func (s *Secured) SetPassword(user, password string) {
	s.t.Helper()
	admin, done := connect(s.t, []string{s.Plain()})
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	altered, err := admin.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{User: user, Mechanism: kadm.ScramSha512, Iterations: 4096, Password: password}})
	if err == nil {
		err = altered.Error()
	}
	if err != nil {
		s.t.Fatalf("set the password of %s: %v", user, err)
	}
	// The answer comes once it is written down, and the listener hears of it a moment later.
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Passwords()), kgo.ClientID("amends-test"), kgo.DialTLSConfig(&tls.Config{RootCAs: s.Authority.Pool()}),
		kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	for err = client.Ping(ctx); err != nil; err = client.Ping(ctx) {
		if ctx.Err() != nil {
			s.t.Fatalf("the broker does not take the password of %s: %v", user, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
