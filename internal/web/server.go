package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// DefaultListen is where the role listens unless told.
const DefaultListen = "127.0.0.1:9464"

// What Listen was asked for wrongly (exit 2).
var (
	// ErrAddress: Listen is no address and port.
	ErrAddress = errors.New("no address to listen on")
	// ErrToken: an address beyond loopback without a token, or a token that no request can carry.
	ErrToken = errors.New("no usable token")
)

// Options say what is served. Listen, Metrics, Ready and Version are required.
type Options struct {
	// Listen is an IP address, localhost or nothing (every address), and a port; 0 is any free one.
	Listen string
	// Token is what every request but that for /livez carries in Authorization: Bearer, "" for none.
	Token   string
	Metrics http.Handler
	// Ready says why the process is not ready, each reason on one line, none when it is. It ends soon by itself.
	Ready   func(context.Context) []string
	Version any          // as JSON
	Logger  *slog.Logger // nil discards
}

// Server listens, and answers while Serve runs.
type Server struct {
	listener net.Listener
	http     *http.Server
	slots    chan struct{} // one a request that is being answered
}

// Listen takes the address. Whoever asks is answered once Serve runs, which also gives the address back.
func Listen(o Options) (*Server, error) {
	at, err := parse(o.Listen)
	if err != nil {
		return nil, err
	}
	if err := guarded(at, o.Token); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	listener, err := net.ListenTCP("tcp", at)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: another process has this port; end it, or take another with -listen: %w", o.Listen, err)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", o.Listen, err)
	}
	s := &Server{listener: listener, slots: make(chan struct{}, requests)}
	s.http = &http.Server{Handler: s.handler(&o), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes, ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn)}
	return s, nil
}

// parse reads an address without asking anybody for a name: what is checked is what is listened on.
func parse(listen string) (*net.TCPAddr, error) {
	host, text, err := net.SplitHostPort(listen)
	port, bad := strconv.ParseUint(text, 10, 16)
	if err != nil || bad != nil {
		return nil, fmt.Errorf("%w: %q is not ADDRESS:PORT", ErrAddress, listen)
	}
	switch host {
	case "":
		return &net.TCPAddr{Port: int(port)}, nil
	case "localhost":
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return nil, fmt.Errorf("%w: %q is neither an IP address nor localhost", ErrAddress, host)
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, uint16(port))), nil
}

// guarded refuses an address that others reach without a token.
func guarded(at *net.TCPAddr, token string) error {
	switch {
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("%w: it holds spaces or characters beyond ASCII", ErrToken)
	case token == "" && !at.IP.IsLoopback():
		return fmt.Errorf("%w: %s is reached from elsewhere", ErrToken, at)
	}
	return nil
}

// Addr returns the address that was taken, with its port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Serve answers requests until ctx ends, which is no error. It returns after every answer has ended and gives the address back.
func (s *Server) Serve(ctx context.Context) error {
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	s.http.BaseContext = func(net.Listener) context.Context { return base }
	ended := make(chan error, 1)
	go func() { ended <- s.http.Serve(s.listener) }()
	var failed error
	select {
	case failed = <-ended:
		failed = fmt.Errorf("serve %s: %w", s.Addr(), failed)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(base, drainTimeout)
	defer cancel()
	if s.http.Shutdown(drain) != nil {
		cut()
		_ = s.http.Close()
	}
	for range cap(s.slots) { // nobody answers any more once all of them are taken
		s.slots <- struct{}{}
	}
	if failed == nil {
		<-ended
	}
	return failed
}
