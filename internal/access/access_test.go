package access

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"amends/internal/kafkatest"
	"amends/internal/pgtest"
	"amends/internal/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m) }

// The secrets of the test: none of them may be seen.
const (
	first  = "planted-7d1f-one"
	second = "planted-7d1f-two"
	wrong  = "planted-7d1f-wrong"
)

// site is a shell on a secured Kafka that keeps all that was said.
type site struct {
	*programtest.Shell
	t     *testing.T
	kafka *kafkatest.Secured
	said  strings.Builder
}

// with is the site's settings with others; an empty one is taken out.
func (s *site) with(settings map[string]string, line string) programtest.Answer {
	s.t.Helper()
	before := s.Env
	defer func() { s.Env = before }()
	s.Env = maps.Clone(before)
	maps.Copy(s.Env, settings)
	a := s.Run(line)
	fmt.Fprintln(&s.said, line, a.Stdout, a.Stderr)
	return a
}

// ends runs a command line, which must end with the code, its cause holding those words.
func (s *site) ends(code int, cause string, settings map[string]string, line string) string {
	s.t.Helper()
	a := s.with(settings, line)
	if !a.Is(code, cause) {
		s.t.Errorf("%s with %v: code %d, want %d with %q\n%s%s", line, settings, a.Code, code, cause, a.Stdout, a.Stderr)
	}
	return a.Stdout
}

// load loads a fixture, which publishes.
func (s *site) load(settings map[string]string, name string) {
	s.t.Helper()
	s.ends(0, "published", settings, "amends source load -manifest @pipeline.json -file "+programtest.Fixture(s.t, name))
}

// passes verifies to the bottom.
func (s *site) passes(settings map[string]string, headline string) {
	s.t.Helper()
	if got := s.ends(0, "", settings, fmt.Sprintf("amends verify -manifest @pipeline.json -deep -timeout %v", programtest.Deadline)); !strings.HasPrefix(got, headline) {
		s.t.Errorf("verify: %s, want %s", got, headline)
	}
}

// token is an unsecured JWT.
func token(subject string, until time.Time) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, subject, time.Now().Add(-time.Minute).Unix(), until.Unix())) + "."
}

// Reliability 4 and 5: the worked session over SASL_SSL, passwords rotated under running roles, client certificates, tokens, every
// refusal, and no secret in anything that was said, written or started.
// Shows F19.
func TestKafkaWithTLSAndCredentials(t *testing.T) {
	t.Parallel()
	k := kafkatest.SecuredServer(t)
	k.SetPassword("amends", first)
	s := &site{Shell: programtest.New(t), t: t, kafka: k}
	s.Env["TMPDIR"] = s.Dir
	maps.Copy(s.Env, map[string]string{"AMENDS_DATABASE_URL": pgtest.New(t), "AMENDS_BROKERS": k.Passwords(), "AMENDS_KAFKA_TLS": "true", "AMENDS_KAFKA_CA_FILE": k.Authority.File,
		"AMENDS_KAFKA_SASL": "SCRAM-SHA-512", "AMENDS_KAFKA_USER": "amends", "AMENDS_KAFKA_PASSWORD_FILE": s.password(first)})
	topic := kafkatest.Topic(t, []string{k.Plain()})
	s.Write("source.json", s.ends(0, "", nil, "amends source create -namespace guarded -topic "+topic))
	s.Write("pipeline.json", s.ends(0, "", nil, "amends output create -manifest @source.json -topic "+topic+"-out"))
	roles := s.Start("amends run -manifest @pipeline.json -role source,relay,view,audit")
	s.load(nil, "before.jsonl")
	s.passes(nil, "PASS  3 source records, 5 messages")
	s.certificates()
	s.tokens()
	s.rotated(roles)
	s.refusals()
	s.told()
	s.load(nil, "cancel-last-day.jsonl")
	s.passes(nil, "PASS  5 source records, 11 messages")
	roles.Stop(programtest.Deadline)
	fmt.Fprintln(&s.said, roles.Stdout, roles.Stderr)
	s.children()
	s.hidden()
}

// password puts a password into the file, all at once.
func (s *site) password(text string) string {
	s.t.Helper()
	file := s.Write("password.new", text+"\n")
	if err := os.Rename(file, s.Path("password")); err != nil {
		s.t.Fatal(err)
	}
	return s.Path("password")
}

// certificates goes to the listener where the client certificate says who it is.
func (s *site) certificates() {
	s.t.Helper()
	mine, other := s.kafka.Authority.Issue("amends"), kafkatest.NewAuthority(s.t).Issue("amends")
	by := func(c kafkatest.Certificate) map[string]string {
		return map[string]string{"AMENDS_BROKERS": s.kafka.Certificates(), "AMENDS_KAFKA_SASL": "", "AMENDS_KAFKA_USER": "", "AMENDS_KAFKA_CERT_FILE": c.CertFile, "AMENDS_KAFKA_KEY_FILE": c.KeyFile}
	}
	s.load(by(mine), "correction.jsonl")
	s.passes(by(mine), "PASS  4 source records, 10 messages")
	s.ends(1, "-kafka-cert-file", by(other), "amends source create -namespace n -topic refused")
	s.ends(1, "-kafka-cert-file", by(kafkatest.Certificate{}), "amends source create -namespace n -topic refused")
}

// tokens authenticates by OAUTHBEARER.
func (s *site) tokens() {
	s.t.Helper()
	by := func(token string) map[string]string {
		return map[string]string{"AMENDS_KAFKA_SASL": "OAUTHBEARER", "AMENDS_KAFKA_USER": "", "AMENDS_KAFKA_TOKEN_FILE": s.Write("token", token)}
	}
	good, old := token("planted-7d1f-subject", time.Now().Add(time.Hour)), token("planted-7d1f-subject", time.Now().Add(-30*time.Second))
	s.passes(by(good), "PASS  4 source records, 10 messages")
	s.ends(1, "AMENDS_KAFKA_TOKEN", by(old), "amends source create -namespace n -topic refused")
	for _, secret := range []string{good, old} {
		if strings.Contains(s.said.String(), secret) {
			s.t.Errorf("a token was said: %s", s.said.String())
		}
	}
}

// rotated changes the password at the broker first, takes the file away, and puts the new one there: the roles go on.
func (s *site) rotated(roles *programtest.Process) {
	s.t.Helper()
	s.kafka.SetPassword("amends", second)
	s.ends(1, "AMENDS_KAFKA_PASSWORD", nil, "amends source create -namespace n -topic refused")
	const refusal = "SASL_AUTHENTICATION_FAILED"
	programtest.Await(s.t, "the roles are asked for the password again and refused", func() bool { return roles.Ended() || strings.Contains(roles.Stderr.String(), refusal) })
	stays := func(while string) {
		s.t.Helper()
		select {
		case <-roles.Done():
			s.t.Fatalf("the roles ended while %s: %s", while, roles.Stderr)
		case <-time.After(3 * time.Second): // every connection is asked again, and every role looks
		}
	}
	stays("the file had the old password")
	if err := os.Remove(s.Path("password")); err != nil {
		s.t.Fatal(err)
	}
	stays("there was no file")
	s.password(second)
	s.passes(nil, "PASS  4 source records, 10 messages")
}

// refusals are those that end a command with code 1 and say what to do.
func (s *site) refusals() {
	s.t.Helper()
	const line = "amends source create -namespace n -topic refused"
	s.ends(1, "AMENDS_KAFKA_PASSWORD", map[string]string{"AMENDS_KAFKA_PASSWORD": wrong}, line)
	s.ends(1, "AMENDS_KAFKA_PASSWORD", map[string]string{"AMENDS_KAFKA_PASSWORD": wrong}, "amends run -manifest @pipeline.json")
	s.ends(1, "-kafka-ca-file", map[string]string{"AMENDS_KAFKA_CA_FILE": kafkatest.NewAuthority(s.t).File}, line)
	s.ends(1, "-kafka-sasl", map[string]string{"AMENDS_KAFKA_SASL": "SCRAM-SHA-256"}, line)
	plain := map[string]string{"AMENDS_KAFKA_TLS": "", "AMENDS_KAFKA_CA_FILE": ""}
	s.ends(1, "-kafka-tls", plain, line)
	// A listener that hangs up without a word could be one that starts: it is waited for, with the advice.
	const brief = "amends run -manifest @pipeline.json -max-wait 6s"
	s.ends(1, "the port may have no TLS", map[string]string{"AMENDS_BROKERS": s.kafka.Plain()}, brief)
	s.ends(1, "-kafka-sasl", map[string]string{"AMENDS_KAFKA_SASL": "", "AMENDS_KAFKA_USER": ""}, brief)
	s.ends(2, "-kafka-user", map[string]string{"AMENDS_KAFKA_USER": ""}, line)
}

// told asks the commands that say much.
func (s *site) told() {
	s.t.Helper()
	direct := map[string]string{"AMENDS_KAFKA_PASSWORD": second, "AMENDS_KAFKA_TOKEN": wrong}
	for _, line := range []string{"amends config print", "amends config print -o json"} {
		if got := s.ends(0, "", direct, line); !strings.Contains(got, "kafka_password") || !strings.Contains(got, s.kafka.Authority.File) {
			s.t.Errorf("%s: %s", line, got)
		}
	}
	s.ends(0, "", direct, "amends doctor -manifest @pipeline.json")
	s.ends(1, "doctor", map[string]string{"AMENDS_KAFKA_PASSWORD": wrong}, "amends doctor -manifest @pipeline.json -o json")
	s.ends(0, "", direct, "amends diagnostics -manifest @pipeline.json")
	s.ends(0, "", direct, "amends status -manifest @pipeline.json -o json")
	s.ends(0, "", direct, "amends inspect -manifest @pipeline.json")
}

// children starts processes: they reach the broker as their parent does, by flags without secrets.
func (s *site) children() {
	s.t.Helper()
	showcase := s.Start("amends showcase -records 0 -work @w -namespace shown -o json -report @shown.html")
	seen := false
	for !showcase.Ended() {
		for _, path := range list(s.t, "/proc", "cmdline") {
			b, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(b), s.Path("w")) {
				continue
			}
			seen = seen || strings.Contains(string(b), "-kafka-sasl=SCRAM-SHA-512")
			s.said.Write(b)
		}
		time.Sleep(100 * time.Millisecond)
	}
	a := showcase.Wait()
	if a.Code != 0 || !seen {
		s.t.Errorf("showcase: code %d, its processes seen: %v\n%s", a.Code, seen, a.Stderr)
	}
	fmt.Fprintln(&s.said, a.Stdout, a.Stderr)
}

// list returns the files of that name one directory below another.
func list(t *testing.T, dir, name string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "[0-9]*", name))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// hidden looks for secrets in all that was said and in every file that was written, but those that hold them.
func (s *site) hidden() {
	s.t.Helper()
	const planted = "planted-7d1f"
	if n := strings.Index(s.said.String(), planted); n >= 0 {
		s.t.Errorf("a secret was said: %.200s", s.said.String()[max(0, n-100):])
	}
	err := filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == s.Path("password") {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), planted) {
			s.t.Errorf("a secret was written to %s", path)
		}
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
	if !strings.Contains(s.said.String(), "shown") {
		s.t.Error("nothing was looked at")
	}
}
