package delivery

// task is work beside a Step. Its owner joins it before anything that it touches is touched again.
type task struct {
	done chan struct{}
	err  error
}

// begin runs f in a goroutine, or at once where a simulator wants one order of events.
func begin(serial bool, f func() error) *task {
	t := &task{done: make(chan struct{})}
	if serial {
		t.err = f()
		close(t.done)
		return t
	}
	go func() {
		defer close(t.done)
		t.err = f()
	}()
	return t
}

// finished reports whether join would return at once.
func (t *task) finished() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

func (t *task) join() error {
	<-t.done
	return t.err
}
