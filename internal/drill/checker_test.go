package drill

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// canary is a test that only remembers whether it failed.
type canary struct {
	testing.TB
	said []string
}

func (c *canary) Helper() {}

func (c *canary) Errorf(format string, args ...any) {
	c.said = append(c.said, fmt.Sprintf(format, args...))
}

func (c *canary) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	runtime.Goexit()
}

func (c *canary) Fatal(args ...any) { c.Fatalf("%s", fmt.Sprint(args...)) }

// The checker finds each fault that is planted after a clean run, so a drill that passes says something.
func TestCheckerFindsPlantedFaults(t *testing.T) {
	t.Parallel()
	s := newSpace(t, shape{1, 2})
	p := s.start("run -manifest pipeline.json")
	st := s.stream(5, 200)
	s.moves("some records", shown, 300)
	st.stop()
	s.check(st)
	p.stop()
	source, _ := s.consume(s.source, 0)
	published, _ := s.checkTopic(0)
	checks := map[string]func(*space){
		"journal":  func(o *space) { o.checkJournal(0, source) },
		"receipts": func(o *space) { o.checkReceipts(0) },
		"view":     func(o *space) { o.checkView(0, published) },
		"topic":    func(o *space) { o.checkTopic(0) },
		"values":   func(o *space) { o.checkValues(0, source, published) },
		"source":   func(o *space) { o.holds(0, source, st.acknowledged[0]) },
	}
	finds := func(fault, check string) {
		t.Helper()
		if said := s.asCanary(checks[check]); len(said) == 0 {
			t.Errorf("%s: the check of the %s found nothing", fault, check)
		}
	}
	for _, c := range []struct{ check, fault, sql, back string }{
		{"journal", "a decision is lost", "UPDATE amends.journal SET partition = 9 WHERE source_offset = 3", "UPDATE amends.journal SET partition = 0 WHERE source_offset = 3"},
		{"receipts", "a receipt is lost", "UPDATE amends.receipts SET partition = 9 WHERE first_sequence = 0", "UPDATE amends.receipts SET partition = 0 WHERE first_sequence = 0"},
		{"receipts", "a receipt names other offsets", "UPDATE amends.receipts SET output_offset = output_offset + 1000000 WHERE first_sequence = 0", "UPDATE amends.receipts SET output_offset = output_offset - 1000000 WHERE first_sequence = 0"},
		{"view", "a close is another", "UPDATE amends.view_rows SET close = close + 1 WHERE kind = 1 AND present", "UPDATE amends.view_rows SET close = close - 1 WHERE kind = 1 AND present"},
		{"view", "a row is lost", "UPDATE amends.view_rows SET partition = 9 WHERE kind = 3", "UPDATE amends.view_rows SET partition = 0 WHERE kind = 3"},
		{"topic", "an output was never published", "UPDATE amends.partitions SET next_sequence = next_sequence + 1", "UPDATE amends.partitions SET next_sequence = next_sequence - 1"},
	} {
		s.query(c.sql)
		finds(c.fault, c.check)
		s.query(c.back)
		if said := s.asCanary(checks[c.check]); len(said) != 0 {
			t.Fatalf("%s: after it was put back the check of the %s says %v", c.fault, c.check, said)
		}
	}
	gone := source[len(source)-1]
	source = source[:len(source)-1]
	finds("an acknowledged record is gone", "source")
	finds("a decision of nothing", "journal")
	source = append(source, gone)
	published[len(published)-1].Present = !published[len(published)-1].Present
	finds("a value is not what the source says", "values")
	published[len(published)-1].Present = !published[len(published)-1].Present
	s.republish(published[2].raw)
	if _, duplicates := s.checkTopic(0); duplicates != 1 {
		t.Errorf("%d duplicates, 1 was published", duplicates)
	}
	s.republish(strings.Replace(published[2].raw, `"revision":`, `"revision":9`, 1))
	finds("a repetition with other bytes", "topic")
	s.republish(strings.Replace(published[2].raw, `"sequence":2,`, `"sequence":999999,`, 1))
	finds("a gap in the sequences", "topic")
}

// asCanary runs a check and returns what it complained of.
func (s *space) asCanary(check func(*space)) []string {
	s.t.Helper()
	c := &canary{TB: s.t}
	inner, outer := *s, *s.site
	outer.t = c
	inner.site = &outer
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(&inner)
	}()
	<-done
	return c.said
}

// republish appends a record to the output topic.
func (s *space) republish(value string) {
	s.t.Helper()
	r := movement("x", 0, 0, 1, 0)
	r.Topic, r.Value = s.output, []byte(value)
	s.send(r)
}
