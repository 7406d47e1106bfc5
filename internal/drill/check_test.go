package drill

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The checker reads topics and SQL and shares no code with the product: what the source holds, what was decided of it, what
// the output topic holds, what receipts say, and what the view shows.

// consume reads a partition of a topic, read committed, from its start to its last stable offset. next is the position after
// the last record or marker.
func (s *space) consume(topic string, partition int) (records []*kgo.Record, next int64) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stalled := time.AfterFunc(deadline, cancel) // a long topic may take its time as long as it moves
	defer stalled.Stop()
	ends, err := s.admin.ListCommittedOffsets(ctx, topic)
	if err != nil {
		s.t.Fatal(err)
	}
	end, ok := ends.Lookup(topic, int32(partition))
	if !ok || end.Err != nil {
		s.t.Fatalf("no end of %s %d: %v", topic, partition, end.Err)
	}
	c, err := kgo.NewClient(kgo.SeedBrokers(s.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {int32(partition): kgo.NewOffset().At(0)}}))
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	for next < end.Offset {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			s.t.Fatalf("read %s partition %d at %d of %d: %v", topic, partition, next, end.Offset, err)
		}
		stalled.Reset(deadline)
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if !r.Attrs.IsControl() {
				records = append(records, r)
			}
		})
	}
	return records, next
}

// drained waits until everything in the source is decided, published and shown.
func (s *space) drained() {
	s.t.Helper()
	for p := range s.partitions {
		_, next := s.consume(s.source, p)
		s.reaches(p, next)
	}
}

// reaches waits until every role has done its work of a partition's source up to a position, as long as any of them moves.
func (s *space) reaches(p int, next int64) {
	s.t.Helper()
	sql := fmt.Sprintf("SELECT p.frontier >= %d AND p.next_sequence = r.next_sequence AND r.next_sequence = v.next_sequence, p.frontier, r.next_sequence, v.next_sequence FROM amends.partitions p "+
		"JOIN amends.relay_progress r USING (namespace_id, partition) JOIN amends.view_progress v USING (namespace_id, partition) WHERE namespace_id = $NS AND partition = %d", next, p)
	last, since := "", time.Now()
	for {
		at := s.one(sql)
		switch {
		case strings.HasPrefix(at, "t"):
			return
		case at != last:
			last, since = at, time.Now()
		case time.Since(since) > deadline:
			s.t.Fatalf("partition %d of %s stands at %s, not drained up to %d", p, s.name, at, next)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// result is what a check found.
type result struct {
	records, rejected, outputs, duplicates int
}

func (r result) String() string {
	return fmt.Sprintf("%d source records, %d of them rejected, %d outputs, 0 lost, 0 doubled at the view, %d duplicates at the topic", r.records, r.rejected, r.outputs, r.duplicates)
}

// fewest is how many source records a drill with a stream must have had: with fewer it says nothing.
const fewest = 50

// check waits until the namespace is drained and compares every stage with the one before it, then the whole with a
// recomputation from the source, and at last by verify -deep.
func (s *space) check(sent *stream) result {
	s.t.Helper()
	s.drained()
	var sum result
	for p := range s.partitions {
		source, _ := s.consume(s.source, p)
		if sent != nil {
			s.holds(p, source, sent.acknowledged[p])
		}
		sum.records += len(source)
		sum.rejected += s.checkJournal(p, source)
		published, duplicates := s.checkTopic(p)
		s.checkReceipts(p)
		s.checkView(p, published)
		s.checkValues(p, source, published)
		sum.outputs += len(published)
		sum.duplicates += duplicates
	}
	if sent != nil && sum.records < fewest {
		s.t.Errorf("%d source records, fewer than the %d that a drill is for", sum.records, fewest)
	}
	s.verifies()
	return sum
}

// verifies runs the product's own deep verification, which must say PASS.
func (s *space) verifies() {
	s.t.Helper()
	if out, _ := s.run(0, fmt.Sprintf("verify -manifest pipeline.json -deep -timeout %v", deadline)); !strings.HasPrefix(out, "PASS") {
		s.t.Errorf("verify said %s", out)
	}
}

// holds checks that the source kept what it acknowledged: without that nothing else can be asked for.
func (s *space) holds(p int, source []*kgo.Record, acknowledged map[int64]string) {
	s.t.Helper()
	at := map[int64]string{}
	for _, r := range source {
		at[r.Offset] = string(r.Value)
	}
	for offset, value := range acknowledged {
		if at[offset] != value {
			s.t.Fatalf("the broker lost offset %d of partition %d: %q, acknowledged was %q", offset, p, at[offset], value)
		}
	}
}

// digest is the journal's: over key and value, each behind its length (S11).
func digest(r *kgo.Record) string {
	h := sha256.New()
	for _, b := range [][]byte{r.Key, r.Value} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// checkJournal: one decision a source record, of exactly its bytes, and every rejected record in quarantine with them.
func (s *space) checkJournal(p int, source []*kgo.Record) (rejected int) {
	s.t.Helper()
	var want, wantQuarantine []string
	for _, r := range source {
		if !bytes.HasPrefix(r.Value, []byte("{")) {
			wantQuarantine = append(wantQuarantine, fmt.Sprintf("%d %s", r.Offset, r.Value))
		}
		want = append(want, fmt.Sprintf("%d %s %t", r.Offset, digest(r), !bytes.HasPrefix(r.Value, []byte("{"))))
	}
	got := s.lines("SELECT source_offset, encode(digest, 'hex'), CASE WHEN rejection IS NULL THEN 'false' ELSE 'true' END FROM amends.journal WHERE namespace_id = $NS AND partition = %d ORDER BY source_offset", p)
	if d := cmp.Diff(want, got); d != "" {
		s.t.Errorf("%s partition %d: decisions (-source +journal):\n%s", s.name, p, d)
	}
	got = s.lines("SELECT source_offset, convert_from(value, 'UTF8') FROM amends.quarantine WHERE namespace_id = $NS AND partition = %d ORDER BY source_offset", p)
	if d := cmp.Diff(wantQuarantine, got); d != "" {
		s.t.Errorf("%s partition %d: quarantine (-source +database):\n%s", s.name, p, d)
	}
	return len(wantQuarantine)
}

// lines returns rows with their columns joined by blanks.
func (s *space) lines(sql string, args ...any) (out []string) {
	s.t.Helper()
	for _, row := range s.query(fmt.Sprintf(sql, args...)) {
		out = append(out, strings.Join(row, " "))
	}
	return out
}

// envelope is what S8 says of an output's record.
type envelope struct {
	Namespace string          `json:"namespace"`
	Output    []string        `json:"output"`
	Payload   json.RawMessage `json:"payload"`
	Cause     struct {
		TxnID     string `json:"txn_id"`
		Partition int    `json:"partition"`
		Offset    int64  `json:"offset"`
		Revision  int64  `json:"revision"`
	} `json:"cause"`
	Repair struct {
		Index int `json:"index"`
		Count int `json:"count"`
	} `json:"repair"`
	Sequence int64 `json:"sequence"`
	Version  int64 `json:"version"`
	Schema   int   `json:"schema"`
	Present  bool  `json:"present"`

	raw string
	id  string
}

// checkTopic folds a partition of the output topic: first occurrences in sequence order, repetitions of equal bytes, versions
// 1, 2, 3 … of each output, whole repairs in the order of their causes. It returns the first occurrences and counts the rest.
func (s *space) checkTopic(p int) (first []envelope, duplicates int) {
	s.t.Helper()
	records, _ := s.consume(s.output, p)
	versions := map[string]int64{}
	for _, r := range records {
		e := envelope{raw: string(r.Value)}
		if err := json.Unmarshal(r.Value, &e); err != nil {
			s.t.Fatalf("partition %d offset %d: %v in %s", p, r.Offset, err, r.Value)
		}
		e.id = strings.Join(e.Output, " ")
		next := int64(len(first))
		if e.Sequence < next {
			if duplicates++; first[e.Sequence].raw != e.raw {
				s.t.Errorf("partition %d offset %d repeats sequence %d with other bytes:\n%s\n%s", p, r.Offset, e.Sequence, first[e.Sequence].raw, e.raw)
			}
			continue
		}
		versions[e.id]++
		switch {
		case e.Sequence != next:
			s.t.Fatalf("partition %d offset %d: sequence %d where %d is next: outputs are lost", p, r.Offset, e.Sequence, next)
		case e.Version != versions[e.id]:
			s.t.Errorf("partition %d offset %d: version %d of %s where %d is next", p, r.Offset, e.Version, e.id, versions[e.id])
		case e.Namespace != s.name || e.Cause.Partition != p || string(r.Key) != fmt.Sprintf(`{"item":%q,"location":%q}`, e.Output[1], e.Output[2]):
			s.t.Errorf("partition %d offset %d: not of this partition: %s %s", p, r.Offset, r.Key, r.Value)
		case e.Repair.Index > 0 && (next == 0 || first[next-1].Cause != e.Cause || first[next-1].Repair.Index != e.Repair.Index-1),
			e.Repair.Index == 0 && next > 0 && (first[next-1].Cause.Offset >= e.Cause.Offset || first[next-1].Repair.Index != first[next-1].Repair.Count-1):
			s.t.Errorf("partition %d offset %d: a repair is torn: %s after %s", p, r.Offset, e.raw, first[next-1].raw)
		}
		first = append(first, e)
	}
	if emitted := s.number(fmt.Sprintf("SELECT next_sequence FROM amends.partitions WHERE namespace_id = $NS AND partition = %d", p)); emitted != int64(len(first)) {
		s.t.Errorf("partition %d: %d outputs decided, %d published", p, emitted, len(first))
	}
	return first, duplicates
}

// checkReceipts: consecutive sequences without gap or overlap, at offsets that hold just those.
func (s *space) checkReceipts(p int) {
	s.t.Helper()
	records, _ := s.consume(s.output, p)
	at := map[int64]int64{}
	for _, r := range records {
		var e struct{ Sequence int64 }
		if err := json.Unmarshal(r.Value, &e); err != nil {
			s.t.Fatal(err)
		}
		at[r.Offset] = e.Sequence
	}
	next := int64(0)
	for _, row := range s.query(fmt.Sprintf("SELECT first_sequence, next_sequence, output_offset FROM amends.receipts WHERE namespace_id = $NS AND partition = %d ORDER BY first_sequence", p)) {
		var n [3]int64
		for i := range n {
			n[i], _ = strconv.ParseInt(row[i], 10, 64)
		}
		if n[0] != next {
			s.t.Errorf("partition %d: a receipt begins at sequence %d, the last ended at %d", p, n[0], next)
		}
		for i := range n[1] - n[0] {
			if found, ok := at[n[2]+i]; !ok || found != n[0]+i {
				s.t.Errorf("partition %d: the receipt of sequence %d says offset %d, which holds %d (%t)", p, n[0]+i, n[2]+i, found, ok)
			}
		}
		next = n[1]
	}
	if stored := s.number(fmt.Sprintf("SELECT next_sequence FROM amends.relay_progress WHERE namespace_id = $NS AND partition = %d", p)); stored != next {
		s.t.Errorf("partition %d: receipts end at %d, the relay's position is %d", p, next, stored)
	}
}

// checkView: each row is the last version published, one row an output, and nothing else is there.
func (s *space) checkView(p int, published []envelope) {
	s.t.Helper()
	last := map[string]envelope{}
	for _, e := range published {
		last[e.id] = e
	}
	want := map[string]string{}
	for id, e := range last {
		h := sha256.Sum256([]byte(e.raw))
		payload := string(e.Payload)
		if !e.Present {
			payload = "NULL"
		}
		want[id] = fmt.Sprintf("version %d sequence %d present %t payload %s cause %d %s %d repair %d/%d digest %d", e.Version, e.Sequence, e.Present, payload,
			e.Cause.Offset, e.Cause.TxnID, e.Cause.Revision, e.Repair.Index, e.Repair.Count, int64(binary.BigEndian.Uint64(h[:8])))
	}
	got := map[string]string{}
	rows := s.query(fmt.Sprintf(`SELECT concat_ws(' ', CASE kind WHEN 1 THEN 'balance' WHEN 2 THEN 'alert' ELSE 'status' END, convert_from(item, 'UTF8'), convert_from(location, 'UTF8'), CASE WHEN kind < 3 THEN day::text END),
		format('version %%s sequence %%s present %%s payload %%s cause %%s %%s %%s repair %%s/%%s digest %%s', version, sequence, CASE WHEN present THEN 'true' ELSE 'false' END,
			CASE WHEN NOT present THEN 'NULL' WHEN kind = 1 THEN format('{"close":%%s}', close) WHEN kind = 2 THEN format('{"previous":%%s,"close":%%s,"threshold":%%s}', previous, close, threshold) ELSE status END,
			cause_offset, convert_from(cause_txn_id, 'UTF8'), cause_revision, repair_index, repair_count, digest)
		FROM amends.view_rows JOIN amends.view_keys USING (namespace_id, partition, key_id) WHERE namespace_id = $NS AND partition = %d`, p))
	for _, row := range rows {
		if _, twice := got[row[0]]; twice {
			s.t.Errorf("partition %d: %s has two rows", p, row[0])
		}
		got[row[0]] = row[1]
	}
	if d := cmp.Diff(want, got); d != "" {
		s.t.Errorf("%s partition %d: rows (-topic +view):\n%s", s.name, p, d)
	}
}

// checkValues recomputes a partition from its source records, the naive way, and compares what should be shown now.
func (s *space) checkValues(p int, source []*kgo.Record, published []envelope) {
	s.t.Helper()
	got := map[string]string{}
	for _, e := range published {
		delete(got, e.id)
		if e.Present {
			got[e.id] = string(e.Payload)
		}
	}
	if d := cmp.Diff(recompute(s.t, source), got); d != "" {
		s.t.Errorf("%s partition %d: values (-recomputed +published):\n%s", s.name, p, d)
	}
}

// undisturbed runs another namespace over the same source in one process that nothing happens to, and compares the envelopes
// of both, byte for byte (I9).
func (s *space) undisturbed() {
	s.t.Helper()
	o := s.beside("calm")
	p := o.start("run -manifest pipeline.json")
	o.drained()
	p.stop()
	for p := range s.partitions {
		want, _ := o.checkTopic(p)
		got, _ := s.checkTopic(p)
		if len(want) != len(got) {
			s.t.Errorf("partition %d: %d outputs, undisturbed %d", p, len(got), len(want))
			continue
		}
		for i := range want {
			if calm := strings.Replace(want[i].raw, `"namespace":"calm"`, `"namespace":"`+s.name+`"`, 1); calm != got[i].raw {
				s.t.Fatalf("partition %d: undisturbed:\n%s\nhere:\n%s", p, calm, got[i].raw)
			}
		}
	}
}
