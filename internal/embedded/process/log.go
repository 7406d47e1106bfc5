package process

import (
	"fmt"
	"os"
	"strings"
)

// logKeepBytes is how long a log may get before it is put aside, its only predecessor being dropped.
const logKeepBytes = 16 << 20

// OpenLog opens a log for appending and returns where the new part begins.
func OpenLog(path string) (*os.File, int64, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logKeepBytes {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, 0, fmt.Errorf("rotate log: %w", err)
		}
	}
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open log: %w", err)
	}
	info, err := log.Stat()
	if err != nil {
		log.Close()
		return nil, 0, fmt.Errorf("open log: %w", err)
	}
	return log, info.Size(), nil
}

// LogSince is what a log holds from a place on, empty when it cannot be read.
func LogSince(path string, from int64) string {
	raw, err := os.ReadFile(path)
	if err != nil || int64(len(raw)) < from {
		return ""
	}
	return string(raw[from:])
}

// LastLines is the end of what a program said, for an error.
func LastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}

// Tell reports progress to whoever listens; progress may be nil.
func Tell(progress func(string), text string) {
	if progress != nil {
		progress(text)
	}
}
