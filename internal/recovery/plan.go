package recovery

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"amends/internal/broker"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pause"
	"amends/internal/store"
)

// Limits of recovery.
const (
	sampleRecords = 50_000                 // read before anything else, to tell how long the rest takes
	sampleTime    = 500 * time.Millisecond // and no longer than this
	replayFetch   = 1 << 20                // bytes of one fetch of a replay, which looks at each record once
	progressEvery = 1_000                  // records between two words on progress
	readPatience  = 20 * time.Second       // for the next record of a broker that may be away (S12)
	lastLook      = 4 * time.Second        // at what a change came to, once its command was told to stop
)

// What the later stages of a rebuild did a second on two cores: for estimates alone.
const (
	decidedPerSecond   = 60_000
	publishedPerSecond = 20_000
)

// Stages of Progress beside the phases of a rebuild.
const (
	stageReplay  = "replay"
	stageCompare = "compare"
)

// Units says what each stage of Progress counts.
func Units() map[string]string {
	return map[string]string{stageReplay: "records", stageCompare: "outputs", string(store.RebuildRefold): "records", string(store.RebuildDrain): "messages"}
}

// waits are taken between the attempts of one operation (S12).
var waits = [...]time.Duration{100 * time.Millisecond, 200 * time.Millisecond}

// Plan is what a replay or a rebuild has to do.
type Plan struct {
	Records  int64         // source offsets to read
	Outputs  int64         // output versions that were decided from them
	Estimate time.Duration // about how long it takes
}

// sample reads the beginning of the longest partition and returns how many records a second it gave, +Inf for none.
func sample(ctx context.Context, o broker.Options, m *manifest.Manifest, ends []ledger.Frontier) (float64, error) {
	longest := 0
	for p, end := range ends {
		if end > ends[longest] {
			longest = p
		}
	}
	source, err := broker.NewReader(o, m.SourceTopic, m.Config.SourceIncarnation)
	if err != nil {
		return 0, fmt.Errorf("open source: %w", err)
	}
	defer source.Close()
	var n int64
	var failed error
	began := time.Now() // the way to the first record counts: what follows it may have come with it
	for range sourceRecords(ctx, source.ReadTo, ledger.Partition(longest), ends[longest], &failed) {
		if n++; n == sampleRecords || time.Since(began) > sampleTime {
			break
		}
	}
	if failed != nil || n == 0 {
		return math.Inf(1), failed
	}
	return float64(n) / max(time.Since(began).Seconds(), 1e-6), nil
}

// lasting is how long n take at that many a second.
func lasting(n int64, perSecond float64) time.Duration {
	return time.Duration(float64(n) / perSecond * float64(time.Second))
}

// attempts repeats an operation while it says that it is not settled: three times in all, with the waits of S12 between.
func attempts(ctx context.Context, try func() (settled bool, err error)) error {
	for n := 0; ; n++ {
		settled, err := try()
		if settled || n == len(waits) {
			return err
		}
		if pause.For(ctx, waits[n]) != nil {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}
