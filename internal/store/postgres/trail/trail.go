package trail

import (
	"sync"

	"amends/internal/ledger"
	"amends/internal/store"
)

// most is how many marks a partition keeps, the latest.
const most = 1_024

// Trail holds the marks of every partition of a namespace, as one server has it. Safe for concurrent use; the zero value
// holds none.
type Trail struct {
	marks  map[ledger.Partition][]mark
	server store.Server
	mu     sync.Mutex
}

// mark says that no output from sequence on lies below offset.
type mark struct {
	sequence ledger.Sequence
	offset   ledger.Offset
}

// Mark notes that no output from sequence on lies below offset. Another server than before drops every older mark: after a
// failover what was seen may be lost.
func (t *Trail) Mark(server store.Server, p ledger.Partition, sequence ledger.Sequence, offset ledger.Offset) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.marks == nil || server != t.server {
		t.marks, t.server = map[ledger.Partition][]mark{}, server
	}
	marks := t.marks[p]
	for len(marks) > 0 && marks[len(marks)-1].sequence > sequence {
		marks = marks[:len(marks)-1] // a search that began again
	}
	if n := len(marks); n > 0 && marks[n-1].sequence == sequence {
		marks[n-1].offset = max(marks[n-1].offset, offset)
	} else {
		if n == most {
			marks = append(marks[:0], marks[1:]...)
		}
		marks = append(marks, mark{sequence, offset})
	}
	t.marks[p] = marks
}

// From returns the source offset from which a search for the decision that holds sequence may begin: from, or a mark past
// it.
func (t *Trail) From(server store.Server, p ledger.Partition, sequence ledger.Sequence, from ledger.Offset) ledger.Offset {
	t.mu.Lock()
	defer t.mu.Unlock()
	if server != t.server {
		return from
	}
	marks := t.marks[p]
	for i := len(marks) - 1; i >= 0; i-- {
		if marks[i].sequence <= sequence {
			return max(from, marks[i].offset)
		}
	}
	return from
}
