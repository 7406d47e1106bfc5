package inspect

import (
	"bufio"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"

	"amends/internal/health"
	"amends/internal/phrase"
)

//go:embed page.gohtml
var pageText string

// The geometry of a small chart, in units of its view box.
const (
	chartWidth  = 320.0
	chartHeight = 64.0
	chartSlots  = 32
	barGap      = 2.0
	stageHeight = 22.0 // one row of the chart of stages
	stageWidth  = 700.0
	stageLabel  = 36.0 // where the bars begin, behind the partition's number
	chartsMost  = 64   // partitions with charts; tables hold all
)

// page is what the template shows.
type page struct {
	*health.Progress
	Scope  string
	Stages []stageRow
	Work   []work
	Left   int // partitions without charts
	// Unlisted blocked keys are those that are counted only.
	Unlisted int64
	// StageHeight is that of the chart of stages.
	StageHeight float64
}

// stageRow is one partition's bar: source records, outputs to publish, outputs to apply.
type stageRow struct {
	Parts     []rect
	Text      float64 // the baseline of its name
	Partition int32
}

// rect is one mark of a chart with what it says.
type rect struct {
	Class      string
	Says       string
	X, Y, W, H float64
}

// work is what the commits of a partition cost.
type work struct {
	*health.Partition
	Earlier string
	Charts  []chart
}

// chart is one measure of the latest commits, oldest first.
type chart struct {
	Name string
	Most string
	Last string
	Bars []rect
}

// measures are what is drawn of a sample.
var measures = [...]struct {
	of    func(*health.Sample) int64
	shown func(int64) string
	name  string
}{
	{name: "records", of: func(s *health.Sample) int64 { return s.Records }, shown: plain},
	{name: "rewind depth, days", of: func(s *health.Sample) int64 { return s.Rewind }, shown: plain},
	{name: "refolded days", of: func(s *health.Sample) int64 { return s.Refolded }, shown: plain},
	{name: "changed outputs", of: func(s *health.Sample) int64 { return s.Changed }, shown: plain},
	{name: "waited for the lock", of: func(s *health.Sample) int64 { return s.Lock }, shown: nanos},
	{name: "until COMMIT", of: func(s *health.Sample) int64 { return s.PreCommit }, shown: nanos},
}

func plain(n int64) string { return strconv.FormatInt(n, 10) }

// ProgressPage writes the progress as one HTML page that refers to nothing outside itself and runs no script. Each chart has a
// table with the same numbers.
func ProgressPage(w io.Writer, p *health.Progress) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"name": Name, "line": phrase.Printable, "age": health.Age, "nanos": nanos, "lag": lag, "waiting": waiting, "number": number64, "holder": holder, "state": partitionState,
		"verified": verified, "trust": trust, "count": phrase.Counted[int64], "reasons": Reasons, "record": coordinates, "commits": commits, "many": phrase.Counted[int], "next": func(i int) int { return i + 1 },
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	shown := &page{Progress: p, Scope: scope, Unlisted: p.BlockedKeys - int64(len(p.Blocked))}
	shown.stages()
	shown.works()
	out := bufio.NewWriter(w)
	if err := t.Execute(out, shown); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return out.Flush()
}

// trust is the class of what was proven last.
func trust(p *health.Progress) string {
	status := ""
	if health.AuditedLast(p) {
		status = p.Audit.Status
	} else if p.Verification != nil {
		status = p.Verification.Status
	}
	switch status {
	case "PASS":
		return "good"
	case "DRIFT", "BLOCKED", "UNAVAILABLE":
		return "bad"
	}
	return "warn"
}

// stages lays out what waits, by partition.
func (p *page) stages() {
	var most int64 = 1
	sums := make([]int64, len(p.Partitions))
	for i := range p.Partitions {
		for _, n := range waits(&p.Partitions[i]) {
			sums[i] += n
		}
		most = max(most, sums[i])
	}
	for i := range p.Partitions {
		if sums[i] == 0 {
			continue
		}
		y := float64(len(p.Stages)) * stageHeight
		row := stageRow{Partition: p.Partitions[i].Partition, Text: y + 12}
		x := stageLabel
		for stage, n := range waits(&p.Partitions[i]) {
			width := float64(n) / float64(most) * stageWidth
			if n == 0 {
				continue
			}
			row.Parts = append(row.Parts, rect{Class: "s" + strconv.Itoa(stage+1), X: x, Y: y, W: max(1, width-barGap), H: stageHeight - 6,
				Says: fmt.Sprintf("partition %d: %s", row.Partition, phrase.Counted(n, stageNames[stage]))})
			x += width
		}
		p.Stages = append(p.Stages, row)
	}
	p.StageHeight = float64(len(p.Stages)) * stageHeight
}

var stageNames = [...]string{"source record", "output to publish", "published output to apply"}

// waits are the three stages of a partition; an unknown lag counts nothing and is said in the table.
func waits(p *health.Partition) [3]int64 {
	var records int64
	if p.Lag.Records != nil {
		records = *p.Lag.Records
	}
	return [3]int64{records, p.Outbox.Outputs, p.Unapplied.Outputs}
}

// works lays out the commits of the partitions, charts for those that had most of them.
func (p *page) works() {
	byCommits := make([]*health.Partition, len(p.Partitions))
	for i := range p.Partitions {
		byCommits[i] = &p.Partitions[i]
	}
	slices.SortStableFunc(byCommits, func(a, b *health.Partition) int {
		return int(min(max(b.Measurements.Commits-a.Measurements.Commits, -1), 1))
	})
	charted := map[int32]bool{}
	for _, one := range byCommits[:min(len(byCommits), chartsMost)] {
		charted[one.Partition] = true
	}
	p.Left = len(byCommits) - len(charted)
	for i := range p.Partitions {
		one := work{Partition: &p.Partitions[i], Earlier: earlier(&p.Partitions[i])}
		if recent := p.Partitions[i].Measurements.Recent; len(recent) > 0 && charted[one.Partition.Partition] {
			for _, m := range measures {
				one.Charts = append(one.Charts, draw(m.name, recent, m.of, m.shown))
			}
		}
		p.Work = append(p.Work, one)
	}
}

// draw makes the bars of one measure; a commit with none of it has no bar.
func draw(name string, recent []health.Sample, of func(*health.Sample) int64, shown func(int64) string) chart {
	var most int64
	for i := range recent {
		most = max(most, of(&recent[i]))
	}
	c := chart{Name: name, Most: shown(most), Last: shown(of(&recent[len(recent)-1]))}
	slot := chartWidth / chartSlots
	for i := range recent {
		n := of(&recent[i])
		if n == 0 {
			continue
		}
		h := max(1, float64(n)/float64(most)*chartHeight)
		c.Bars = append(c.Bars, rect{X: float64(chartSlots-len(recent)+i) * slot, Y: chartHeight - h, W: slot - barGap, H: h, Says: shown(n)})
	}
	return c
}
