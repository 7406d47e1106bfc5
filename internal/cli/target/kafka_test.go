package target

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"amends/internal/broker"
	"amends/internal/kafkatest"
	"amends/internal/usage"
)

// Settings that make no sense, that no file stands behind, or that would show a secret are refused in one sentence (exit 2).
func TestKafkaSettingsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	a := kafkatest.NewAuthority(t)
	mine, other := a.Issue("mine"), a.Issue("other")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	given := map[string]string{PasswordName: "planted-1", TokenName: "planted-2"}
	for want, c := range map[string]struct {
		k   kafka
		env map[string]string
		at  string
	}{
		"-kafka-user needs -kafka-sasl":                          {k: kafka{tls: true, user: "u"}},
		"-kafka-sasl SCRAM-SHA-512 needs -kafka-user":            {k: kafka{tls: true, mechanism: "SCRAM-SHA-512"}, env: given},
		`-kafka-sasl "scram": PLAIN, SCRAM-SHA-256, SCRAM-SHA-5`: {k: kafka{tls: true, mechanism: "scram", user: "u"}, env: given},
		"OAUTHBEARER takes no -kafka-user":                       {k: kafka{tls: true, mechanism: "OAUTHBEARER", user: "u"}, env: given},
		"needs a secret: set AMENDS_KAFKA_PASSWORD, or":          {k: kafka{tls: true, mechanism: "PLAIN", user: "u"}, env: map[string]string{TokenName: "x"}},
		"needs a secret: set AMENDS_KAFKA_TOKEN, or":             {k: kafka{tls: true, mechanism: "OAUTHBEARER"}, env: map[string]string{PasswordName: "x"}},
		"AMENDS_KAFKA_PASSWORD_FILE: open /nowhere":              {k: kafka{mechanism: "SCRAM-SHA-256", user: "u"}, env: map[string]string{PasswordName + "_FILE": "/nowhere"}},
		empty + " is empty":                                      {k: kafka{mechanism: "SCRAM-SHA-256", user: "u"}, env: map[string]string{PasswordName + "_FILE": empty}},
		"-kafka-cert-file and -kafka-key-file belong together":   {k: kafka{tls: true, cert: mine.CertFile}},
		"-kafka-key-file belong together":                        {k: kafka{tls: true, key: mine.KeyFile}},
		"need -kafka-tls":                                        {k: kafka{ca: a.File}},
		"-kafka-ca-file and -kafka-cert-file need -kafka-tls":    {k: kafka{cert: mine.CertFile, key: mine.KeyFile}},
		"open /nowhere/ca.pem":                                   {k: kafka{tls: true, ca: "/nowhere/ca.pem"}},
		"holds no certificate":                                   {k: kafka{tls: true, ca: mine.KeyFile}},
		"private key does not match public key":                  {k: kafka{tls: true, cert: mine.CertFile, key: other.KeyFile}},
		"-kafka-sasl PLAIN would send its secret readable":       {k: kafka{mechanism: "PLAIN", user: "u"}, env: given, at: "kafka-1:9092"},
		"readable to 10.0.0.1:9092: add -kafka-tls":              {k: kafka{mechanism: "OAUTHBEARER"}, env: given, at: "10.0.0.1:9092"},
	} {
		addresses := []string{"127.0.0.1:9092"}
		if c.at != "" {
			addresses = append(addresses, c.at)
		}
		s, err := c.k.security(func(name string) string { return c.env[name] }, addresses)
		var wrong *usage.Error
		if s != nil || !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%+v: %v, want %q", c.k, err, want)
		}
	}
}

// What the flags say is what a connection gets, secrets and files read again, and what a process started by this one is told.
func TestKafkaSettingsReachConnectionsAndProcesses(t *testing.T) {
	t.Parallel()
	a := kafkatest.NewAuthority(t)
	mine := a.Issue("mine")
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	env := map[string]string{PasswordName + "_FILE": file}
	e := &Env{Getenv: func(name string) string { return env[name] }, brokers: []string{"kafka-1:9092"},
		kafka: kafka{tls: true, ca: a.File, cert: mine.CertFile, key: mine.KeyFile, mechanism: "SCRAM-SHA-512", user: "u"}}
	o, err := e.BrokerOptions([]string{"127.0.0.1:1"})
	if err != nil || !slices.Equal(o.Brokers, []string{"kafka-1:9092"}) {
		t.Fatal(o.Brokers, err)
	}
	s := o.Security
	if !s.TLS || s.CAFile != a.File || s.CertFile != mine.CertFile || s.KeyFile != mine.KeyFile || s.Mechanism != broker.ScramSHA512 || s.User != "u" || !s.Rotates {
		t.Errorf("%v %q %q %q %q %q %v", s.TLS, s.CAFile, s.CertFile, s.KeyFile, s.Mechanism, s.User, s.Rotates)
	}
	for _, want := range []string{"one", "two"} {
		write(want)
		if got, err := s.Secret(); got != want || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	want := []string{"-kafka-tls=true", "-kafka-ca-file=" + a.File, "-kafka-cert-file=" + mine.CertFile, "-kafka-key-file=" + mine.KeyFile, "-kafka-sasl=SCRAM-SHA-512", "-kafka-user=u"}
	if got := KafkaFlags(s); !slices.Equal(got, want) {
		t.Errorf("flags %q", got)
	}
	if got := KafkaFlags(nil); !slices.Equal(got, []string{"-kafka-tls=false", "-kafka-ca-file=", "-kafka-cert-file=", "-kafka-key-file=", "-kafka-sasl=", "-kafka-user="}) {
		t.Errorf("flags of none %q", got)
	}
	if got, err := e.KafkaSecrets(s); err != nil || !slices.Equal(got, []string{PasswordName + "_FILE=" + file}) {
		t.Errorf("variables %q, %v", got, err)
	}
	env[PasswordName] = "direct"
	if o, err = e.BrokerOptions(nil); err != nil || o.Security.Rotates {
		t.Fatalf("rotates %v, %v", o.Security.Rotates, err)
	}
	if got, err := e.KafkaSecrets(o.Security); err != nil || !slices.Equal(got, []string{PasswordName + "=direct"}) {
		t.Errorf("variables %q, %v", got, err)
	}
	if got, err := e.KafkaSecrets(nil); err != nil || got != nil {
		t.Errorf("variables of none %q, %v", got, err)
	}
	e.brokers = nil // the broker of the embedded stack wants nothing
	if o, err = e.BrokerOptions([]string{"127.0.0.1:1"}); err != nil || o.Security != nil || o.Brokers[0] != "127.0.0.1:1" {
		t.Errorf("%v %v %v", o.Brokers, o.Security, err)
	}
}
