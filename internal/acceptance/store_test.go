package acceptance

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"amends/internal/absent"
	"amends/internal/engine"
	"amends/internal/ledger"
	"amends/internal/manifest"
	"amends/internal/pace"
	"amends/internal/pgtest"
	"amends/internal/store"
	"amends/internal/store/memory"
	"amends/internal/store/postgres"
	"amends/internal/store/storetest"
	"amends/internal/wire"
	"amends/internal/workload"
)

const roomy = 1 << 40 // bytes of key states, so many that none is evicted

// line is one partition of a namespace and its source records.
type line struct {
	t         *testing.T
	ns        storetest.Namespace
	cfg       *manifest.Config
	records   []ledger.SourceRecord
	partition ledger.Partition
}

// work decides and commits every record in batches of the given sizes. Before a batch for which restart says so the worker
// starts again: it claims, has nothing in memory and loads what it needs.
func (l *line) work(size func() int, restart func() bool) (restarts int) {
	l.t.Helper()
	ctx, decoder := l.t.Context(), wire.NewDecoder(l.cfg)
	var states *engine.States
	var owned store.Owned
	for at := 0; at < len(l.records); {
		if states == nil || restart() {
			restarts++
			var err error
			if owned, err = l.ns.Claim(ctx, l.partition); err != nil {
				l.t.Fatal(err)
			}
			states = engine.NewStates(l.cfg, l.partition, roomy)
		}
		batch := make([]wire.Decoded, min(size(), len(l.records)-at))
		for i := range batch {
			batch[i] = decoder.Decode(l.records[at+i])
		}
		at += len(batch)
		for missing := states.Missing(batch); len(missing) > 0; {
			histories, err := l.ns.Load(ctx, owned.Token, l.partition, missing, false)
			if err != nil {
				l.t.Fatal(err)
			}
			for _, h := range histories {
				if err := states.Restore(h.Key, h.KeyID, h.Known, h.Snapshot, h.Decisions); err != nil {
					l.t.Fatal(err)
				}
			}
			missing = missing[len(histories):]
		}
		b, err := engine.Step(states, engine.Position{Frontier: owned.Frontier, Sequence: owned.Sequence}, batch, ledger.Frontier(l.records[at-1].Offset)+1)
		if err != nil || len(b.Decisions) != len(batch) {
			l.t.Fatalf("%d of %d decided: %v", len(b.Decisions), len(batch), err)
		}
		if err := l.ns.Commit(ctx, owned.Token, &b); err != nil {
			l.t.Fatal(err)
		}
		owned.Frontier, owned.Sequence = b.Next, b.NextSequence
	}
	return restarts
}

// outbox returns the pending envelopes as a relay would publish them.
func (l *line) outbox() []string {
	l.t.Helper()
	decisions, err := l.ns.Pending(l.t.Context(), l.partition, store.RelayPosition{}, 1<<30)
	if err != nil {
		l.t.Fatal(err)
	}
	return envelopes(l.cfg, l.partition, decisions)
}

// journal returns every decision of the partition.
func (l *line) journal() (all []ledger.Decision) {
	l.t.Helper()
	err := l.ns.Snapshot(l.t.Context(), func(x store.Snapshot) error {
		return x.Journal(l.t.Context(), l.partition, func(d *ledger.Decision) error {
			all = append(all, store.CloneDecision(d))
			return nil
		})
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return all
}

func envelopes(cfg *manifest.Config, p ledger.Partition, decisions []ledger.Decision) (out []string) {
	encoder := wire.NewEncoder(cfg, p)
	for i := range decisions {
		for c := range decisions[i].Changes {
			out = append(out, string(encoder.Append(nil, &decisions[i], c)))
		}
	}
	return out
}

// undisturbed decides the records one a batch, in memory and without a store.
func undisturbed(t *testing.T, cfg *manifest.Config, p ledger.Partition, records []ledger.SourceRecord) (all []ledger.Decision) {
	t.Helper()
	states, decoder := engine.NewStates(cfg, p, roomy), wire.NewDecoder(cfg)
	var at engine.Position
	for _, r := range records {
		batch := []wire.Decoded{decoder.Decode(r)}
		for _, key := range states.Missing(batch) {
			if err := states.Restore(key, 0, false, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		b, err := engine.Step(states, at, batch, ledger.Frontier(r.Offset)+1)
		if err != nil {
			t.Fatal(err)
		}
		at = engine.Position{Frontier: b.Next, Sequence: b.NextSequence}
		all = append(all, store.CloneDecision(&b.Decisions[0]))
	}
	return all
}

// onPostgres and inMemory open a namespace of each store.

func onPostgres(t *testing.T, db *postgres.DB) func(*manifest.Config) storetest.Namespace {
	return func(cfg *manifest.Config) storetest.Namespace {
		ns, err := db.Init(t.Context(), cfg, "amends-test-none")
		if err != nil {
			t.Fatal(err)
		}
		return ns
	}
}

func inMemory(t *testing.T) func(*manifest.Config) storetest.Namespace {
	db := memory.New()
	return func(cfg *manifest.Config) storetest.Namespace {
		ns, err := db.Init(t.Context(), cfg, "amends-test-none")
		if err != nil {
			t.Fatal(err)
		}
		return ns
	}
}

func openPostgres(t *testing.T) *postgres.DB {
	t.Helper()
	ctx := context.Background()
	db, err := postgres.Open(ctx, postgres.Options{URL: pgtest.New(t, pgtest.Fast), AllowFsyncOff: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := db.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	return db
}

// I9 on PostgreSQL: 200 random histories, committed under random batch cuts with the worker started again in between, leave
// what one record a batch and no restart decides: the same journal and the same envelope bytes.
// Shows I9.
func TestI9SameBytesOnPostgresUnderAnyCut(t *testing.T) {
	t.Parallel()
	histories := pace.Of(200)
	open := onPostgres(t, openPostgres(t))
	restarts, records := 0, 0
	for seed := range uint64(histories) {
		h := workload.NewHistory(workload.DefaultHistory(seed ^ 0x1900))
		cfg, err := h.Config(fmt.Sprintf("history-%d", seed))
		if err != nil {
			t.Fatal(err)
		}
		ns, rng := open(cfg), rand.New(rand.NewPCG(seed, 9))
		for p := range ledger.Partition(cfg.Partitions) {
			l := &line{t: t, ns: ns, cfg: cfg, partition: p, records: h.Partition(p)}
			half, batches := max(len(l.records)/2, 1), 0
			restarts += l.work(func() int { batches++; return 1 + rng.IntN(half) }, func() bool { return batches == 1 || rng.IntN(3) == 0 }) - 1
			records += len(l.records)
			want := undisturbed(t, cfg, p, l.records)
			if a, b := envelopes(cfg, p, want), l.outbox(); !slices.Equal(a, b) {
				t.Fatalf("seed %d partition %d (-one a batch +cut):\n%s", seed, p, cmp.Diff(a, b))
			}
			if got := l.journal(); !reflect.DeepEqual(want, got) {
				t.Fatalf("seed %d partition %d journal (-one a batch +cut):\n%s", seed, p, cmp.Diff(want, got))
			}
		}
	}
	if restarts < histories || records < 60*histories {
		t.Errorf("%d restarts and %d records in %d histories: they show too little", restarts, records, histories)
	}
	t.Logf("%d histories, %d records, %d restarts", histories, records, restarts)
}

// Every folder of the vectors through each store, cut at random with restarts: the outbox is the vector's envelopes byte for
// byte, and the quarantine its rejections with their exact bytes.
func TestVectorsByStore(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join(absent.Vectors(t), "*", "config.json"))
	if err != nil || len(folders) < 14 {
		t.Fatalf("%d vectors: %v", len(folders), err)
	}
	for name, open := range map[string]func(*manifest.Config) storetest.Namespace{"memory": inMemory(t), "postgres": onPostgres(t, openPostgres(t))} {
		for _, config := range folders {
			folder := filepath.Dir(config)
			t.Run(name+"/"+filepath.Base(folder), func(t *testing.T) {
				vectorByStore(t, folder, open)
			})
		}
	}
}

func vectorByStore(t *testing.T, folder string, open func(*manifest.Config) storetest.Namespace) {
	cfg, err := manifest.ParseConfig([]byte(readFile(t, folder, "config.json")), "kafka:00112233445566778899aabbccddeeff")
	if err != nil {
		t.Fatal(err)
	}
	ns, rng, raw := open(cfg), rand.New(rand.NewPCG(1, 9)), rawRecords(t, filepath.Join(folder, "raw.jsonl"))
	var published, rejected []string
	for p := range ledger.Partition(cfg.Partitions) {
		l := &line{t: t, ns: ns, cfg: cfg, partition: p, records: raw[p]}
		l.work(func() int { return 1 + rng.IntN(9) }, func() bool { return rng.IntN(2) == 0 })
		for _, e := range l.outbox() {
			published = append(published, fmt.Sprintf("%d\t%s", p, e))
		}
		for _, d := range l.journal() {
			if d.Rejection == 0 {
				continue
			}
			rejected = append(rejected, fmt.Sprintf("%d\t%d\t%v", p, d.Offset, d.Rejection))
			checkEvidence(t, &raw[p][d.Offset], d.Evidence)
		}
	}
	if d := cmp.Diff(tabbed(t, folder, "envelopes.tsv"), published, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("envelopes (-vector +store):\n%s", d)
	}
	if d := cmp.Diff(tabbed(t, folder, "rejected.tsv"), rejected, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("rejections (-vector +store):\n%s", d)
	}
}

// checkEvidence compares the quarantined bytes with the record's.
func checkEvidence(t *testing.T, r *ledger.SourceRecord, e *ledger.Evidence) {
	t.Helper()
	key, value := r.Key, r.Value
	if len(key) > 8_192 || len(value) > 65_536 { // TOO_LARGE
		key, value = key[:min(len(key), 8_192)], value[:min(len(value), 65_536)]
	}
	if e == nil || string(e.Key) != string(key) || string(e.Value) != string(value) || (e.Key == nil) != (key == nil) || (e.Value == nil) != (value == nil) ||
		e.KeyLength != int64(len(r.Key)) || e.ValueLength != int64(len(r.Value)) || e.KeySHA != sha256.Sum256(r.Key) || e.ValueSHA != sha256.Sum256(r.Value) {
		t.Errorf("partition %d offset %d: the evidence is not the record's bytes", r.Partition, r.Offset)
	}
}

// tabbed reads a vector's lines, those of a partition together, in their order.
func tabbed(t *testing.T, folder, name string) []string {
	t.Helper()
	lines := strings.FieldsFunc(readFile(t, folder, name), func(r rune) bool { return r == '\n' })
	slices.SortStableFunc(lines, func(a, b string) int {
		a, _, _ = strings.Cut(a, "\t")
		b, _, _ = strings.Cut(b, "\t")
		return strings.Compare(a, b)
	})
	return lines
}

// rawRecords reads raw records and numbers them from 0 on each partition.
func rawRecords(t *testing.T, path string) map[ledger.Partition][]ledger.SourceRecord {
	t.Helper()
	out := map[ledger.Partition][]ledger.SourceRecord{}
	decode := func(s *string) []byte {
		if s == nil {
			return nil
		}
		b, err := base64.StdEncoding.DecodeString(*s)
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte{}, b...)
	}
	for _, row := range strings.Split(strings.TrimSpace(readFile(t, path)), "\n") {
		var r struct {
			Key, Value *string
			Partition  ledger.Partition
		}
		if err := json.Unmarshal([]byte(row), &r); err != nil {
			t.Fatal(err)
		}
		out[r.Partition] = append(out[r.Partition], ledger.SourceRecord{Partition: r.Partition, Offset: ledger.Offset(len(out[r.Partition])), Key: decode(r.Key), Value: decode(r.Value)})
	}
	return out
}
