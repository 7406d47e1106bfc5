package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// runAs says as whom PostgreSQL runs: it refuses uid 0. The zero value runs it as the caller.
type runAs struct {
	uid, gid  int
	namespace bool // the caller's files and processes stay root's; PostgreSQL sees uid inside a user namespace
}

// apply sets what starts a command under this identity.
func (r runAs) apply(cmd *exec.Cmd) {
	if r.uid == 0 {
		return
	}
	if r.namespace {
		cmd.SysProcAttr = namespaceAttr(r.uid, r.gid)
		return
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(r.uid), Gid: uint32(r.gid)}}
}

// own gives everything under dir to the identity where it needs that.
func (r runAs) own(dir string) error {
	if r.uid == 0 || r.namespace {
		return nil
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, r.uid, r.gid)
	})
	if err != nil {
		return fmt.Errorf("give %s to uid %d: %w", dir, r.uid, err)
	}
	return nil
}

// chooseRunAs finds an identity under which the program at postgres runs on the data in dir. A caller other than root
// runs it plainly. For root it is a user namespace, and where the kernel refuses that or namespaces is false, another uid.
func chooseRunAs(ctx context.Context, postgres, dir string, namespaces bool) (runAs, error) {
	if os.Geteuid() != 0 {
		return runAs{}, nil
	}
	uid, gid, err := unprivileged()
	if err != nil {
		return runAs{}, err
	}
	owner, known := ownerOf(filepath.Join(dir, "PG_VERSION"))
	candidates := []runAs{{uid: uid, gid: gid}}
	if namespaces {
		candidates = append([]runAs{{uid: uid, gid: gid, namespace: true}}, candidates...)
	}
	if known && owner != 0 { // made earlier under another uid: stay with it
		candidates = []runAs{{uid: owner, gid: gid}}
	}
	var causes []error
	for _, c := range candidates {
		cause := c.probe(ctx, postgres, dir)
		if cause == nil {
			return c, nil
		}
		causes = append(causes, cause)
	}
	return runAs{}, fmt.Errorf("run PostgreSQL as an unprivileged user (it refuses root) on %s: %w; start amends as "+
		"another user, or give a directory that uid %d can reach with -dir", dir, errors.Join(causes...), uid)
}

// probe tries the identity: the program must run, and the directory that holds dir must be reachable.
func (r runAs) probe(ctx context.Context, postgres, dir string) error {
	if !r.namespace {
		if err := os.Lchown(filepath.Dir(dir), r.uid, r.gid); err != nil {
			return fmt.Errorf("give %s to uid %d: %w", filepath.Dir(dir), r.uid, err)
		}
	}
	for _, args := range [][]string{{postgres, "--version"}, {"/bin/sh", "-c", `cd "$1"`, "sh", filepath.Dir(dir)}} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = "/"
		r.apply(cmd)
		if out, err := cmd.CombinedOutput(); err != nil {
			kind := "uid " + strconv.Itoa(r.uid)
			if r.namespace {
				kind = "user namespace"
			}
			return fmt.Errorf("%s: run %s: %w %s", kind, args[0], err, out)
		}
	}
	return nil
}

// unprivileged is a user that the passwd file names: initdb insists on an entry.
func unprivileged() (uid, gid int, err error) {
	for _, name := range []string{"postgres", "_postgres", "nobody"} {
		u, lookup := user.Lookup(name)
		if lookup != nil {
			continue
		}
		uid, errU := strconv.Atoi(u.Uid)
		gid, errG := strconv.Atoi(u.Gid)
		if errU == nil && errG == nil && uid > 0 {
			return uid, gid, nil
		}
	}
	return 0, 0, errors.New("run PostgreSQL as root's child: no user postgres or nobody is known on this machine")
}

// ownerOf is the uid that owns a file; false when the file cannot be read.
func ownerOf(path string) (int, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
