package mapping

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The guide's table has a row for every name of a mapping file, in this order, and no other; names within a part are in
// its text. What a mapping file needs and what it is without a name is tried against the guide's own words.
func TestTheGuideHasEveryName(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/guides/import.md")
	if err != nil {
		t.Fatal(err)
	}
	_, reference, ok := strings.Cut(string(b), "\n## The mapping file\n")
	if !ok {
		t.Fatal("the guide has no section on the mapping file")
	}
	reference, _, _ = strings.Cut(reference, "\n## ")
	var rows []string
	without := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|.*\\| (.*) \\|$").FindAllStringSubmatch(reference, -1) {
		rows = append(rows, m[1])
		without[m[1]] = m[2]
	}
	if diff := cmp.Diff(Keys(""), rows); diff != "" {
		t.Error(diff)
	}
	for part := range keys {
		for _, name := range Keys(part) {
			if !strings.Contains(reference, "`"+name+"`") && !strings.Contains(reference, name+":") {
				t.Errorf("%s: %s is not in the guide", part, name)
			}
		}
	}
	for line := range strings.Lines(least) {
		name, _, _ := strings.Cut(line, ":")
		_, err := Parse([]byte(strings.Replace(least, line, "", 1)))
		if refused := strings.HasPrefix(without[name], "refused"); refused != (err != nil) {
			t.Errorf("without %s: %v, and the guide says %q", name, err, without[name])
		}
	}
	for _, word := range outcomes[receipt:] {
		if !strings.Contains(reference, "`"+word+"`") {
			t.Errorf("kind %s is not in the guide", word)
		}
	}
}
