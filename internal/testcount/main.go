package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	path := flag.String("o", "", "also keep the events in this file")
	flag.Parse()
	if err := run(os.Stdin, os.Stdout, *path); err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
		os.Exit(1)
	}
}

// run counts what in tells, keeping a copy at path unless that is empty.
func run(in io.Reader, out io.Writer, path string) error {
	c := newCounter(out)
	if path == "" {
		if err := c.read(in); err != nil {
			return err
		}
		return c.close()
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("keep events: %w", err)
	}
	copied := bufio.NewWriter(file)
	err = c.read(io.TeeReader(in, copied))
	if err == nil {
		err = c.close()
	}
	if flushed := copied.Flush(); err == nil {
		err = flushed
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
