package operate

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/spf13/cobra"

	"amends/internal/cli/target"
	"amends/internal/health"
	"amends/internal/telemetry"
	"amends/internal/usage"
	"amends/internal/web"
)

// TokenName is the variable that holds the token of the web role, or with _FILE behind it names the file that does.
const TokenName = "AMENDS_HTTP_TOKEN"

// ListenFlag adds -listen to a command that runs roles.
func ListenFlag(cmd *cobra.Command, listen *string) {
	cmd.Flags().StringVar(listen, "listen", web.DefaultListen, "`address` and port of the web role; one beyond loopback needs "+TokenName+" or "+TokenName+"_FILE")
}

// SiteOptions say where a process has its web role and what it was built from.
type SiteOptions struct {
	Log      *slog.Logger
	Answer   any // to /version
	Listen   string
	Version  string
	Revision string
	Go       string
}

// Site is the web role of a process. It answers from before its services are there, not ready and saying so, until it ends.
type Site struct {
	server   *web.Server
	exporter *telemetry.Exporter
	begun    atomic.Pointer[begun]
	end      context.CancelFunc
	done     chan struct{} // closed once err is set
	err      error
}

// begun is what a site knows once the roles run.
type begun struct {
	look  health.Look
	waits func() []string
}

// OpenSite takes the address and begins to answer. The site ends with Close.
func OpenSite(ctx context.Context, e *target.Env, t *target.Target, o SiteOptions) (*Site, error) {
	token, err := usage.Secret(e.Getenv, TokenName)
	if err != nil {
		return nil, err
	}
	s := &Site{done: make(chan struct{}), exporter: telemetry.New(t.Manifest.Config.Namespace, telemetry.Build{Version: o.Version, Revision: o.Revision, Go: o.Go})}
	s.server, err = web.Listen(web.Options{Listen: o.Listen, Token: token, Metrics: s.exporter, Ready: s.ready, Version: o.Answer, Logger: o.Log})
	switch {
	case errors.Is(err, web.ErrToken):
		return nil, usage.Errorf("-listen %s: %v; export %s or %s_FILE", o.Listen, err, TokenName, TokenName)
	case errors.Is(err, web.ErrAddress):
		return nil, usage.Errorf("-listen %s: %v", o.Listen, err)
	case err != nil:
		return nil, err
	}
	ctx, s.end = context.WithCancel(context.WithoutCancel(ctx)) // while roles drain it still answers
	go func() {
		defer close(s.done)
		s.err = s.server.Serve(ctx)
	}()
	o.Log.Info("web listens", "address", s.server.Addr(), "token", token != "")
	return s, nil
}

// Close stops answering, once what is being answered has ended. A process without the role has a nil Site.
func (s *Site) Close() error {
	if s == nil {
		return nil
	}
	s.end()
	<-s.done
	return s.err
}

// Role is the role of a process whose services are there. Its end leaves the site answering while others drain: Close ends that.
func (s *Site) Role(t *target.Target, session *target.Session) func(context.Context, func() []string) error {
	return func(ctx context.Context, waits func() []string) error {
		b := &begun{waits: waits, look: health.Look{Namespace: session.Namespace, Manifest: t.Manifest, Topic: topic(t, session.Admin)}}
		s.exporter.Watch(b.look)
		s.begun.Store(b)
		select {
		case <-ctx.Done():
			return nil
		case <-s.done:
			return s.err
		}
	}
}

// ready says which services are away and what the other roles of the process wait for.
func (s *Site) ready(ctx context.Context) (reasons []string) {
	b := s.begun.Load()
	if b == nil {
		return []string{"starting: the database and the topics are still looked for"}
	}
	database, source := b.look.Away(ctx)
	if database != nil {
		reasons = append(reasons, "database: "+usage.OneLine(database))
	}
	if source != nil {
		reasons = append(reasons, "source topic: "+usage.OneLine(source))
	}
	for _, why := range b.waits() {
		reasons = append(reasons, usage.OneLine(errors.New(why)))
	}
	return reasons
}
