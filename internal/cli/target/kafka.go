package target

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"amends/internal/broker"
	"amends/internal/usage"
)

// The variables that hold the secrets of the brokers; with _FILE they name files instead.
const (
	PasswordName = "AMENDS_KAFKA_PASSWORD" // of PLAIN and SCRAM
	TokenName    = "AMENDS_KAFKA_TOKEN"    // of OAUTHBEARER
)

// kafka is how the brokers are to be reached, as flags say it.
type kafka struct {
	ca        string
	cert      string
	key       string
	mechanism string
	user      string
	tls       bool
}

func (k *kafka) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&k.tls, "kafka-tls", false, "reach the brokers by TLS")
	f.StringVar(&k.ca, "kafka-ca-file", "", "PEM `file` of who may have signed the brokers' certificates (default: the system's authorities)")
	f.StringVar(&k.cert, "kafka-cert-file", "", "PEM `file` of the certificate that this client shows")
	f.StringVar(&k.key, "kafka-key-file", "", "PEM `file` of that certificate's key")
	f.StringVar(&k.mechanism, "kafka-sasl", "", "`mechanism` to authenticate by: "+mechanisms()+"; the secret comes from "+PasswordName+" or "+TokenName+", or the file that either names with _FILE")
	f.StringVar(&k.user, "kafka-user", "", "`name` to authenticate as")
	Complete(cmd, "kafka-sasl", broker.Mechanisms()...)
}

func mechanisms() string {
	var names []string
	for _, m := range broker.Mechanisms() {
		names = append(names, string(m))
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// security returns what the flags say, some of which are given. It fails with *usage.Error for what makes no sense together, for
// files that are no use, and for a secret that would travel readable.
func (k *kafka) security(lookup func(string) string, addresses []string) (*broker.Security, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	s := &broker.Security{TLS: k.tls, Mechanism: broker.Mechanism(k.mechanism), User: k.user}
	for to, name := range map[*string]string{&s.CAFile: k.ca, &s.CertFile: k.cert, &s.KeyFile: k.key} {
		if name == "" {
			continue
		}
		path, err := filepath.Abs(name) // processes that this one starts run elsewhere
		if err != nil {
			return nil, usage.Errorf("find %s: %v", name, err)
		}
		*to = path
	}
	if s.Mechanism != "" {
		name := secretOf(s.Mechanism)
		s.Secret = func() (string, error) { return usage.Secret(lookup, name) }
		s.Rotates = lookup(name) == "" && lookup(name+"_FILE") != ""
		if lookup(name) == "" && !s.Rotates {
			return nil, usage.Errorf("-kafka-sasl %s needs a secret: set %s, or %s_FILE to the path of a file that holds it", k.mechanism, name, name)
		}
	}
	if s.Mechanism.InClear() && !s.TLS {
		for _, a := range addresses {
			if !broker.Loopback(a) {
				return nil, usage.Errorf("-kafka-sasl %s would send its secret readable to %s: add -kafka-tls", k.mechanism, a)
			}
		}
	}
	if err := s.Check(); err != nil {
		return nil, usage.Errorf("%v", err)
	}
	return s, nil
}

// secretOf names the variable of a mechanism's secret.
func secretOf(m broker.Mechanism) string {
	if m == broker.OAuthBearer {
		return TokenName
	}
	return PasswordName
}

// check refuses settings that make no sense together.
func (k *kafka) check() error {
	m := broker.Mechanism(k.mechanism)
	switch {
	case m != "" && !slices.Contains(broker.Mechanisms(), m):
		return usage.Errorf("-kafka-sasl %q: %s", k.mechanism, mechanisms())
	case m == "" && k.user != "":
		return usage.Errorf("-kafka-user needs -kafka-sasl: %s", mechanisms())
	case m == broker.OAuthBearer && k.user != "":
		return usage.Errorf("-kafka-sasl %s takes no -kafka-user: the token says who it is", k.mechanism)
	case m != "" && m != broker.OAuthBearer && k.user == "":
		return usage.Errorf("-kafka-sasl %s needs -kafka-user", k.mechanism)
	case (k.cert == "") != (k.key == ""):
		return usage.Errorf("-kafka-cert-file and -kafka-key-file belong together")
	case !k.tls && k.ca+k.cert != "":
		return usage.Errorf("-kafka-ca-file and -kafka-cert-file need -kafka-tls")
	}
	return nil
}

// KafkaFlags writes how brokers are reached as flags with their values, each that there is, also where it says nothing: a process
// that gets them is told by nothing else. Secrets are not among them.
func KafkaFlags(s *broker.Security) []string {
	if s == nil {
		s = &broker.Security{}
	}
	tls := "-kafka-tls=false"
	if s.TLS {
		tls = "-kafka-tls=true"
	}
	return []string{tls, "-kafka-ca-file=" + s.CAFile, "-kafka-cert-file=" + s.CertFile, "-kafka-key-file=" + s.KeyFile,
		"-kafka-sasl=" + string(s.Mechanism), "-kafka-user=" + s.User}
}

// KafkaSecrets returns the variables, NAME=value, by which a process that this one starts finds the secret: the file where it is
// in one, so that the process sees it replaced. Whatever else names a secret of brokers is to be left out of its environment.
func (e *Env) KafkaSecrets(s *broker.Security) ([]string, error) {
	if s == nil || s.Mechanism == "" {
		return nil, nil
	}
	name := secretOf(s.Mechanism)
	if !s.Rotates {
		return []string{name + "=" + e.Getenv(name)}, nil
	}
	path, err := filepath.Abs(e.Getenv(name + "_FILE"))
	if err != nil {
		return nil, usage.Errorf("find the file of %s: %v", name, err)
	}
	return []string{name + "_FILE=" + path}, nil
}

// IsKafkaSecret reports whether a variable holds or names a secret of brokers.
func IsKafkaSecret(variable string) bool {
	name := strings.TrimSuffix(variable, "_FILE")
	return name == PasswordName || name == TokenName
}
