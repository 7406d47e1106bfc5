package embedded_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"amends/internal/embedded"
)

// Two servers choose one port at the same moment. The one that does not get it takes the next, whether it has the password of the
// one that answers there or not.
func TestPostgresWhosePortIsTakenAtTheLastMoment(t *testing.T) {
	t.Parallel()
	for name, password := range map[string]string{"another password": "of the other", "the same password": "of both"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			taken, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer taken.Close()
			dir := shortDir(t)
			if err := os.Mkdir(dir, 0o711); err != nil { // PostgreSQL may run under another uid
				t.Fatal(err)
			}
			// The port that it remembers is in use; before it takes the next one it says so.
			if err := os.WriteFile(filepath.Join(dir, "port"), []byte(strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)), 0o600); err != nil {
				t.Fatal(err)
			}
			var other *embedded.Postgres
			said := func(line string) {
				var want, port int
				if _, err := fmt.Sscanf(line, "port %d is in use: PostgreSQL listens on %d", &want, &port); err != nil || other != nil {
					return
				}
				if other, err = embedded.StartPostgres(limited(t), embedded.PostgresOptions{Dir: shortDir(t), Password: password, Port: port, BinDir: binaries(t).Dir}); err != nil {
					t.Error(err)
				}
			}
			p, err := embedded.StartPostgres(limited(t), embedded.PostgresOptions{Dir: dir, Password: "of both", BinDir: binaries(t).Dir, Progress: said})
			if other == nil {
				t.Fatalf("no port was taken: %v", err)
			}
			defer other.Stop()
			if err != nil {
				t.Fatal(err)
			}
			defer p.Stop()
			var data string
			exec1(t, p.URL(), "SHOW data_directory", &data)
			if p.Port() == other.Port() || !strings.HasPrefix(data, dir) {
				t.Errorf("port %d, the other one's is %d; at %s answers the server of %s", p.Port(), other.Port(), p.URL(), data)
			}
		})
	}
}
