package telemetry

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"amends/internal/health"
)

// Build is what a process was built from.
type Build struct{ Version, Revision, Go string }

// Exporter answers scrapes, each from one snapshot of the database. Safe for concurrent use.
type Exporter struct {
	look      atomic.Pointer[health.Look]
	families  []family
	descs     []*prometheus.Desc // of the families
	process   *prometheus.Registry
	turn      chan struct{} // holds the scrape that reads: one at a time, so that scrapes never take many connections
	namespace string
	build     Build
}

// New returns an exporter of a namespace. Until Watch names what to look at, it says that the database is away.
func New(namespace string, build Build) *Exporter {
	e := &Exporter{families: families(), process: prometheus.NewRegistry(), turn: make(chan struct{}, 1), namespace: namespace, build: build}
	for _, f := range e.families {
		e.descs = append(e.descs, prometheus.NewDesc(f.Name, f.Help, f.Labels, nil))
	}
	e.process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return e
}

// Watch makes scrapes look at a namespace and its source topic, and at as many blocked keys as a scrape looks at.
func (e *Exporter) Watch(l health.Look) {
	l.Blocked = blockedMost
	e.look.Store(&l)
}

// ServeHTTP answers one scrape, with 200 also while services are away.
func (e *Exporter) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r, ok := e.read(req.Context())
	if !ok {
		http.Error(w, "an earlier scrape still reads", http.StatusServiceUnavailable)
		return
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(scrape{e, r})
	promhttp.HandlerFor(prometheus.Gatherers{e.process, registry}, promhttp.HandlerOpts{}).ServeHTTP(w, req)
}

// read looks once. It is false where no turn came in time: nothing is known then, not even that a service is away.
func (e *Exporter) read(ctx context.Context) (*reading, bool) {
	r := &reading{namespace: e.namespace, build: e.build}
	l := e.look.Load()
	if l == nil {
		return r, true
	}
	waiting, cancel := context.WithTimeout(ctx, turnBudget)
	defer cancel()
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-waiting.Done():
		return nil, false
	}
	r.look(ctx, l)
	return r, ctx.Err() == nil
}

// look reads the namespace, or, where the database is away, asks the broker alone.
func (r *reading) look(ctx context.Context, l *health.Look) {
	looking, cancel := context.WithTimeout(ctx, lookBudget)
	defer cancel()
	r.asked = l.Topic != nil
	if p, err := l.Read(looking); err == nil {
		r.progress, r.answered = p, p.SourceError == ""
		return
	}
	asking, cancel := context.WithTimeout(ctx, askBudget)
	defer cancel()
	r.answered = l.Topic.Answers(asking) == nil
}

// scrape is a reading as a collector.
type scrape struct {
	e *Exporter
	r *reading
}

// Describe names every metric that a scrape may hold.
func (s scrape) Describe(to chan<- *prometheus.Desc) {
	for _, d := range s.e.descs {
		to <- d
	}
}

// Collect writes what was read.
func (s scrape) Collect(to chan<- prometheus.Metric) {
	for i, f := range s.e.families {
		kind := prometheus.GaugeValue
		if f.Counter {
			kind = prometheus.CounterValue
		}
		f.of(s.r, func(value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(s.e.descs[i], kind, value, labels...)
		})
	}
}
