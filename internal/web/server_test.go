package web_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"amends/internal/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a server that answers.
type site struct {
	t    *testing.T
	url  string
	stop func() error // ends it; a further call does nothing
}

func options() web.Options {
	return web.Options{Listen: "127.0.0.1:0", Version: map[string]string{"version": "v1"}, Ready: func(context.Context) []string { return nil },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "amends_build_info 1\n") })}
}

func open(t *testing.T, o web.Options) *site {
	t.Helper()
	s, err := web.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	_, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	x := &site{t: t, url: "http://127.0.0.1:" + port}
	x.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := x.stop(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// answer is what a request was answered with.
type answer struct {
	header http.Header
	body   string
	code   int
}

// ask sends one request on a connection of its own; authorization may be "".
func (x *site) ask(ctx context.Context, method, path, authorization string) (answer, error) {
	x.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, x.url+path, http.NoBody)
	if err != nil {
		x.t.Fatal(err)
	}
	r.Close = true
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	got, err := transport.RoundTrip(r)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return answer{code: got.StatusCode, header: got.Header, body: string(body)}, err
}

// want asks and checks code and body.
func (x *site) want(code int, body, path, authorization string) answer {
	x.t.Helper()
	a, err := x.ask(x.t.Context(), http.MethodGet, path, authorization)
	if err != nil || a.code != code || a.body != body {
		x.t.Errorf("%s with %q: %d %q, %v, want %d %q", path, authorization, a.code, a.body, err, code, body)
	}
	return a
}

func TestEachPathAnswers(t *testing.T) {
	t.Parallel()
	x := open(t, options())
	x.want(200, "alive\n", "/livez", "")
	x.want(200, "ready\n", "/readyz", "")
	x.want(200, "amends_build_info 1\n", "/metrics", "")
	a := x.want(200, `{"version":"v1"}`+"\n", "/version", "")
	if a.header.Get("Content-Type") != "application/json" || a.header.Get("Cache-Control") != "no-store" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", a.header)
	}
	x.want(404, "404 page not found\n", "/", "")
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/version"} {
		if a, err := x.ask(t.Context(), http.MethodHead, path, ""); err != nil || a.code != 200 || a.body != "" {
			t.Errorf("HEAD %s: %+v %v", path, a, err)
		}
		if a, err := x.ask(t.Context(), http.MethodPost, path, ""); err != nil || a.code != 405 && a.code != 404 {
			t.Errorf("POST %s: %+v %v", path, a, err)
		}
	}
}

func TestReadyzSaysWhyNot(t *testing.T) {
	t.Parallel()
	o := options()
	o.Ready = func(context.Context) []string { return []string{"database: refused", "source: group: joining"} }
	open(t, o).want(503, "database: refused\nsource: group: joining\n", "/readyz", "")
}

// Everything but liveness needs the token, wherever the server listens, and any other text is refused.
func TestTokenGuardsEverythingButLiveness(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"0.0.0.0:0", "127.0.0.1:0"} {
		o := options()
		o.Listen, o.Token = listen, "correct-horse"
		x := open(t, o)
		x.want(200, "alive\n", "/livez", "")
		for _, path := range []string{"/readyz", "/metrics", "/version", "/", "/none"} {
			for _, wrong := range []string{"", "Bearer", "Bearer ", "Bearer correct-hors", "Bearer correct-horsf", "Bearer Correct-Horse", "correct-horse", "Basic correct-horse", "Bearer  correct-horse"} {
				if a := x.want(401, "the token is missing or wrong\n", path, wrong); a.header.Get("WWW-Authenticate") != `Bearer realm="amends"` {
					t.Errorf("%v", a.header)
				}
			}
		}
		x.want(200, "amends_build_info 1\n", "/metrics", "Bearer correct-horse")
		x.want(200, "ready\n", "/readyz", "bearer correct-horse")
	}
}

func TestListenRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listen, token string
		want          error
		words         string
	}{
		{"127.0.0.1", "", web.ErrAddress, "ADDRESS:PORT"},
		{"127.0.0.1:http", "", web.ErrAddress, "ADDRESS:PORT"},
		{"127.0.0.1:65536", "", web.ErrAddress, "ADDRESS:PORT"},
		{"", "", web.ErrAddress, "ADDRESS:PORT"},
		{"::1:9464", "", web.ErrAddress, "ADDRESS:PORT"},
		{"example.org:0", "x", web.ErrAddress, `"example.org" is neither`},
		{"0.0.0.0:0", "", web.ErrToken, "0.0.0.0:0 is reached from elsewhere"},
		{":0", "", web.ErrToken, "reached from elsewhere"},
		{"[::]:0", "", web.ErrToken, "reached from elsewhere"},
		{"127.0.0.1:0", "two words", web.ErrToken, "spaces"},
		{"127.0.0.1:0", "line\n", web.ErrToken, "spaces"},
		{"127.0.0.1:0", "é", web.ErrToken, "beyond ASCII"},
	} {
		o := options()
		o.Listen, o.Token = c.listen, c.token
		if _, err := web.Listen(o); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%q with %q: %v, want %v with %q", c.listen, c.token, err, c.want, c.words)
		}
	}
	for _, loopback := range []string{"localhost:0", "127.8.8.8:0"} {
		o := options()
		o.Listen = loopback
		open(t, o)
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	o := options()
	o.Listen = taken.Addr().String()
	_, err = web.Listen(o)
	if err == nil || !strings.Contains(err.Error(), "listen on "+o.Listen+": another process has this port; end it, or take another with -listen") {
		t.Errorf("%v", err)
	}
}

// What is being answered when the role ends is answered; the address is free afterwards.
func TestEndWaitsForAnswers(t *testing.T) {
	t.Parallel()
	o := options()
	came, goOn := make(chan struct{}), make(chan struct{})
	o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(came)
		<-goOn
		_, _ = io.WriteString(w, "late\n")
	})
	x := open(t, o)
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.want(200, "late\n", "/metrics", "")
	}()
	<-came
	ended := make(chan error, 1)
	go func() { ended <- x.stop() }()
	select {
	case err := <-ended:
		t.Errorf("it ended before its answer: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(goOn)
	<-done
	if err := <-ended; err != nil {
		t.Error(err)
	}
	again, err := net.Listen("tcp", strings.TrimPrefix(x.url, "http://"))
	if err != nil {
		t.Fatalf("the address is still taken: %v", err)
	}
	again.Close()
}

// An answer that does not come is cut off after the time to drain, and its context with it.
func TestEndCutsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	o := options()
	came, left := make(chan struct{}), make(chan struct{})
	o.Metrics = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(came)
		<-r.Context().Done()
		close(left)
	})
	x := open(t, o)
	failed := make(chan error, 1)
	go func() {
		_, err := x.ask(context.Background(), http.MethodGet, "/metrics", "")
		failed <- err
	}()
	<-came
	began := time.Now()
	if err := x.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < 2*time.Second || took > 20*time.Second {
		t.Errorf("it took %v, want about 3 s", took)
	}
	select {
	case <-left:
	default:
		t.Error("the server ended before what it answered")
	}
	if <-failed == nil {
		t.Error("the answer came")
	}
}

// Eight requests are answered at a time; a ninth is refused and liveness is not.
func TestTooManyRequestsAreRefused(t *testing.T) {
	t.Parallel()
	o := options()
	const most = 8
	came, goOn := make(chan struct{}, most+1), make(chan struct{})
	o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		came <- struct{}{}
		<-goOn
		_, _ = io.WriteString(w, "x\n")
	})
	x := open(t, o)
	var wg sync.WaitGroup
	for range most {
		wg.Go(func() { x.want(200, "x\n", "/metrics", "") })
	}
	for range most {
		<-came
	}
	x.want(503, "too many requests at once\n", "/readyz", "")
	x.want(200, "alive\n", "/livez", "")
	close(goOn)
	wg.Wait()
	x.want(200, "ready\n", "/readyz", "")
}
