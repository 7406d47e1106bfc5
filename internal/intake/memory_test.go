package intake

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// Memory does not grow with the file: of one of 64 MiB a dry run never holds a quarter at once. Not beside other tests, whose
// memory is the same.
func TestMemoryDoesNotGrowWithTheFile(t *testing.T) {
	const rows, size = 1024, 64 << 10
	path := filepath.Join(t.TempDir(), "stock.csv")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(out)
	fmt.Fprint(w, "sku,site,id,day,n,note\n")
	note := strings.Repeat("long ", size/5)
	for i := range rows {
		fmt.Fprintf(w, "bolt,x,T-%d,2026-01-03,5,%s\n", i, note)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	f := opened(t, path, write(t, "map.yaml", simple), namespace(t, "2026-01-01", 0))
	runtime.GC()
	base, most := inUse(), uint64(0)
	var watch sync.WaitGroup
	done := make(chan struct{})
	watch.Go(func() {
		for {
			most = max(most, inUse()) // read by the test once it has ended
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	err = dryRun(t, f)
	close(done)
	watch.Wait()
	if err != nil || f.Survey().Records != rows {
		t.Fatalf("%d records: %v", f.Survey().Records, err)
	}
	if grown := int64(most) - int64(base); grown > rows*size/4 {
		t.Errorf("the memory in use grew by %d bytes while a file of %d was read", grown, rows*size)
	}
}

// inUse is what the heap holds, what nobody needs any more included.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
