package programtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"amends/internal/cli"
	"amends/internal/scratch"
)

// StandIn is the variable that makes a test binary whose TestMain is Main stand in for the program it names.
const StandIn = "AMENDS_TEST_MAIN"

// Main runs the tests of a binary that can stand in for both programs, its child processes included.
func Main(m *testing.M) {
	switch os.Getenv(StandIn) {
	case "amends":
		os.Exit(cli.Main(cli.Nested))
	case "amendsctl":
		os.Exit(cli.Main(cli.Flat))
	}
	os.Exit(m.Run())
}

// Both programs are built once a test binary.
var (
	plain = sync.OnceValues(func() (string, error) { return build() })
	raced = sync.OnceValues(func() (string, error) { return build("-race") })
)

func build(flags ...string) (dir string, err error) {
	if dir, err = scratch.Dir("amends-program-"); err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	args := append([]string{"build", "-o", dir + "/"}, flags...)
	if out, err := exec.Command("go", append(args, "amends/cmd/amends", "amends/cmd/amendsctl")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return dir, nil
}

// Fixture is the path of a file of the repository's fixtures.
func Fixture(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(root(t), "fixtures", name)
}

// root is the checkout that holds the test.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}
