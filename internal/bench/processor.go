package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// tick is the unit of processor times in /proc.
const tick = 10 * time.Millisecond

// process is what /proc says of one.
type process struct {
	parent int
	spent  time.Duration // with what its ended children spent
}

// processorTime returns what this process, the broker in it and the server have spent so far: on a busy machine it says
// more than the clock. It is 0 where there is no /proc.
func (s *stand) processorTime() time.Duration {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	all := make(map[int]process, len(files))
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(file)
		if p, ok := parseStat(stat); err == nil && ok {
			all[pid] = p
		}
	}
	var sum time.Duration
	for pid, p := range all {
		if pid == os.Getpid() || descends(all, pid, s.postgres.PID()) {
			sum += p.spent
		}
	}
	return sum
}

// parseStat reads the content of a stat file of /proc. The name in it may hold anything.
func parseStat(stat []byte) (process, bool) {
	const parent, user, last = 1, 11, 14 // behind the name: parent; user and system time, both of ended children too
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= last {
		return process{}, false
	}
	var p process
	var err error
	if p.parent, err = strconv.Atoi(string(fields[parent])); err != nil {
		return process{}, false
	}
	for _, f := range fields[user : last+1] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return process{}, false
		}
		p.spent += time.Duration(n) * tick
	}
	return p, true
}

// descends reports whether pid is ancestor or one of its descendants.
func descends(all map[int]process, pid, ancestor int) bool {
	for range len(all) {
		if pid == ancestor {
			return true
		}
		p, ok := all[pid]
		if !ok {
			return false
		}
		pid = p.parent
	}
	return false
}
