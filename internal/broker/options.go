package broker

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"amends/internal/pause"
)

// Options say how to reach the broker. Zero values mean the defaults of this package's limits.
type Options struct {
	// Logger receives the client's own warnings; nil discards them.
	Logger *slog.Logger
	// Security is how connections are protected and who the client is; nil: neither TLS nor credentials.
	Security *Security
	// Dial replaces the dialer; it sees plain addresses and TLS is then its own business.
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	ClientID string
	// Brokers are host:port seeds, at least one.
	Brokers []string
	// FetchBytes and FetchPartitionBytes bound one fetch, in bytes.
	FetchBytes          int32
	FetchPartitionBytes int32
	// FetchWait is how long a fetch without data waits at the broker.
	FetchWait time.Duration
	// Reuse lets a Reader use the memory of what a Poll returned for the next one: keys and values live until then.
	Reuse bool
	// DeliveryTimeout bounds each record's delivery.
	DeliveryTimeout time.Duration
	// RequestTimeout bounds one administrative operation.
	RequestTimeout time.Duration
}

// base returns the client options shared by every client.
func (o Options) base() ([]kgo.Opt, error) {
	if len(o.Brokers) == 0 {
		return nil, errors.New("open broker: no broker address")
	}
	id := o.ClientID
	if id == "" {
		id = "amends"
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(o.Brokers...),
		kgo.ClientID(id),
		kgo.DialTimeout(DialTimeout),
		kgo.RequestTimeoutOverhead(DialTimeout),
		kgo.RetryTimeout(o.requestTimeout()),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(30 * time.Second),
		kgo.DisableClientMetrics(),
		kgo.RetryBackoffFn(backoff),
	}
	if o.Logger != nil {
		opts = append(opts, kgo.WithLogger(clientLog{o.Logger}))
	}
	opts = append(opts, kgo.Dialer(patient(o.dialer())))
	secured, err := o.Security.options()
	if err != nil {
		return nil, err
	}
	return append(opts, secured...), nil
}

// dialer returns how connections are made.
func (o Options) dialer() dial {
	if o.Dial != nil {
		return o.Dial
	}
	return o.Security.dial
}

type dial func(ctx context.Context, network, address string) (net.Conn, error)

// patient makes a connection that was refused take a moment. The client asks again without a pause in places, such as a member
// of the consumer protocol that cannot reach its coordinator, and would keep a core busy with it.
func patient(to dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := to(ctx, network, address)
		if err != nil {
			_ = pause.For(ctx, refusedWait)
		}
		return c, err
	}
}

// consuming returns the options of every client that fetches: read committed, control records kept, no reset ever.
func (o Options) consuming() []kgo.Opt {
	return []kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
		kgo.ConsumeStartOffset(kgo.NoResetOffset()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxBytes(or(o.FetchBytes, FetchBytes)),
		kgo.FetchMaxPartitionBytes(or(o.FetchPartitionBytes, FetchPartitionBytes)),
		kgo.FetchMaxWait(or(o.FetchWait, fetchWait)),
		kgo.MaxDecompressBatchBytes(maxBatchMemory),
	}
}

func (o Options) requestTimeout() time.Duration  { return or(o.RequestTimeout, RequestTimeout) }
func (o Options) deliveryTimeout() time.Duration { return or(o.DeliveryTimeout, DeliveryTimeout) }

// backoff is the client's pause after n failures in a row: 50 ms doubling to 1 s, so that what comes back is seen soon.
func backoff(n int) time.Duration { return min(25*time.Millisecond<<min(n, 6), time.Second) }

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// clientLog carries the client's warnings into slog; its progress messages are left out.
type clientLog struct{ l *slog.Logger }

func (c clientLog) Level() kgo.LogLevel { return kgo.LogLevelWarn }

func (c clientLog) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	at := slog.LevelWarn
	if level == kgo.LogLevelError {
		at = slog.LevelError
	}
	c.l.Log(context.Background(), at, "kafka client: "+msg, keyvals...)
}
