package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tree is an isolated copy of a module in which mutants are made, one at a time.
type tree struct {
	base string // holds the copy and, beside it as in the checkout, the folder shared
	root string
}

// copyTree copies what git knows or would add of the module at root. The folder shared beside the module, which tests look
// for there, is linked.
func copyTree(ctx context.Context, root string) (*tree, error) {
	base, err := os.MkdirTemp("", "amends-mutate-")
	if err != nil {
		return nil, fmt.Errorf("copy tree: %w", err)
	}
	t := &tree{base: base, root: filepath.Join(base, "main")}
	if err := t.fill(ctx, root); err != nil {
		t.remove()
		return nil, fmt.Errorf("copy tree: %w", err)
	}
	return t, nil
}

func (t *tree) fill(ctx context.Context, root string) error {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	names, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	for name := range strings.SplitSeq(string(bytes.TrimRight(names, "\x00")), "\x00") {
		if err := copyFile(filepath.Join(root, name), filepath.Join(t.root, name)); err != nil && !os.IsNotExist(err) { // deleted and not committed
			return err
		}
	}
	shared := filepath.Join(filepath.Dir(root), "shared")
	if _, err := os.Stat(shared); err == nil {
		return os.Symlink(shared, filepath.Join(t.base, "shared"))
	}
	return nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

func (t *tree) remove() { _ = os.RemoveAll(t.base) } // a folder of the system's temporary ones

// mutate makes a mutant's edits, all or none, and returns what takes them back.
func (t *tree) mutate(m *mutant) (restore func() error, err error) {
	was, is := map[string][]byte{}, map[string][]byte{}
	for _, e := range m.edits {
		if was[e.file] == nil {
			text, err := os.ReadFile(filepath.Join(t.root, e.file))
			if err != nil {
				return nil, err
			}
			was[e.file], is[e.file] = text, text
		}
		if is[e.file], err = e.apply(is[e.file]); err != nil {
			return nil, err
		}
	}
	restore = func() error { return t.write(was) }
	if err := t.write(is); err != nil {
		return nil, err
	}
	return restore, nil
}

func (t *tree) write(files map[string][]byte) error {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(t.root, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
