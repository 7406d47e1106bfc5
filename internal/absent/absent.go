package absent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The kinds of absences that AMENDS_REQUIRE can name, beside All.
const (
	KindData       = "data"       // the data sets and vectors beside the project, or under $AMENDS_TEST_DATA
	KindBroker     = "broker"     // a Kafka broker
	KindPostgreSQL = "postgresql" // a PostgreSQL server
	All            = "all"        // every service and program; data is named by itself
)

// Required reports whether AMENDS_REQUIRE, a comma separated list, names the kind. "all" names every kind but KindData.
func Required(kind string) bool {
	named := strings.Split(os.Getenv("AMENDS_REQUIRE"), ",")
	for i := range named {
		named[i] = strings.TrimSpace(named[i])
	}
	return slices.Contains(named, kind) || kind != KindData && slices.Contains(named, All)
}

// Skip ends the test because what is absent: it fails where AMENDS_REQUIRE names the kind and is skipped otherwise,
// with a text that begins with "absent: " and says how to have it.
func Skip(t testing.TB, kind, what, how string) {
	t.Helper()
	text := "absent: " + what + "; to have it: " + how
	if Required(kind) {
		t.Fatal(text)
	}
	t.Skip(text)
}

// Data returns the path of a file or folder of the test data, rel being relative to ../shared/data beside the module
// root or to $AMENDS_TEST_DATA, which comes first. A test without it ends through Skip.
func Data(t testing.TB, rel string) string {
	t.Helper()
	return find(t, "data", rel)
}

// Vectors returns the folder of the contract's vectors: ../shared/vectors beside the module root, or vectors under
// $AMENDS_TEST_DATA. A test without it ends through Skip.
func Vectors(t testing.TB) string {
	t.Helper()
	return find(t, "vectors", ".")
}

func find(t testing.TB, folder, rel string) string {
	t.Helper()
	var roots []string
	if dir := os.Getenv("AMENDS_TEST_DATA"); dir != "" {
		if folder != "data" {
			dir = filepath.Join(dir, folder)
		}
		roots = append(roots, dir)
	}
	if root := moduleRoot(); root != "" {
		roots = append(roots, filepath.Join(filepath.Dir(root), "shared", folder))
	}
	for _, r := range roots {
		p := filepath.Join(r, rel)
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	Skip(t, KindData, folder+" "+rel, "put it into ../shared/"+folder+" or point AMENDS_TEST_DATA at a folder that holds it")
	return ""
}

// moduleRoot walks up from the working directory, a package's folder in a test, to the folder of go.mod.
func moduleRoot() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
	return ""
}
