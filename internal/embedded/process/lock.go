package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Holder describes the process that holds a data directory.
type Holder struct {
	Since   time.Time `json:"since"`
	Command string    `json:"command"`
	PID     int       `json:"pid"`
}

// Lock is an exclusive hold on a directory. It ends with the process, however that ends. The file stays referenced by
// whoever holds the lock: a collected file would drop it.
type Lock struct{ file *os.File }

// Acquire takes the lock file in dir and writes this process into it; *HeldError when another process has it.
func Acquire(dir, name string) (*Lock, error) {
	path := filepath.Join(dir, name)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer file.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		h := readHolder(file)
		for try := 0; h.PID == 0 && try < 5; try++ { // the holder is about to write it
			time.Sleep(20 * time.Millisecond)
			h = readHolder(file)
		}
		return nil, &HeldError{Dir: dir, Holder: h}
	}
	if err := writeHolder(file); err != nil {
		file.Close()
		return nil, err
	}
	return &Lock{file: file}, nil
}

// Release gives the directory up. The file stays: removing it would let two processes lock two files of one name.
func (l *Lock) Release() error {
	if err := l.file.Truncate(0); err != nil {
		l.file.Close()
		return fmt.Errorf("clear lock: %w", err)
	}
	return l.file.Close()
}

func writeHolder(file *os.File) error {
	h := Holder{PID: os.Getpid(), Since: time.Now().UTC().Truncate(time.Second), Command: filepath.Base(os.Args[0])}
	if len(os.Args) > 1 {
		h.Command += " " + os.Args[1]
	}
	raw, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	if _, err := file.WriteAt(append(raw, '\n'), 0); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	return nil
}

// readHolder is the zero Holder when the file does not tell.
func readHolder(file *os.File) Holder {
	var h Holder
	raw, err := io.ReadAll(io.NewSectionReader(file, 0, 4096))
	if err != nil || json.Unmarshal(raw, &h) != nil {
		return Holder{}
	}
	return h
}

// WriteFile writes a file of mode 0600 whole or not at all, and makes it durable.
func WriteFile(path string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(content)
	if err == nil {
		err = temp.Sync()
	}
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err == nil {
		err = SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closed := d.Close(); err == nil {
		err = closed
	}
	return err
}

// WaitLock takes a lock that others hold for a while.
func WaitLock(ctx context.Context, dir, name string) (*Lock, error) {
	for {
		l, err := Acquire(dir, name)
		if held := (*HeldError)(nil); !errors.As(err, &held) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another process: %w", errors.Join(ctx.Err(), err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
