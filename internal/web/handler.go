package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// handler answers /livez to anybody, and the rest to whoever has the token.
func (s *Server) handler(o *Options) http.Handler {
	inner := http.NewServeMux()
	inner.Handle("GET /metrics", o.Metrics)
	inner.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		reasons := o.Ready(r.Context())
		if len(reasons) == 0 {
			say(w, http.StatusOK, "ready")
			return
		}
		say(w, http.StatusServiceUnavailable, strings.Join(reasons, "\n"))
	})
	inner.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(o.Version) // whoever asked is gone
	})
	outer := http.NewServeMux()
	outer.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "alive") })
	outer.Handle("/", authorized(o.Token, s.limited(inner)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		outer.ServeHTTP(w, r)
	})
}

// say answers with text.
func say(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // whoever asked is gone
}

// authorized refuses requests without the token. Digests are compared, so that the time tells nothing of the token, its length
// included.
func authorized(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(given))
		if same := subtle.ConstantTimeCompare(got[:], want[:]) == 1; !same || !strings.EqualFold(scheme, "Bearer") {
			w.Header().Set("WWW-Authenticate", `Bearer realm="amends"`)
			say(w, http.StatusUnauthorized, "the token is missing or wrong")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// limited answers a few requests at a time: each may hold a connection to the database.
func (s *Server) limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
			next.ServeHTTP(w, r)
		default:
			say(w, http.StatusServiceUnavailable, "too many requests at once")
		}
	})
}
