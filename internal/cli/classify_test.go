package cli

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/journal"
	"amends/internal/provision"
	"amends/internal/recovery"
	"amends/internal/store"
	"amends/internal/verify"
	"amends/internal/worker"
)

// codes are the errors that packages export, each with its one exit code (design section 8).
var codes = map[string]struct {
	err  error
	code int
}{
	"store.ErrFence":           {store.ErrFence, 10},
	"store.ErrServerChanged":   {store.ErrServerChanged, 1},
	"store.ErrCommitUnknown":   {store.ErrCommitUnknown, 12},
	"store.ErrNotReplicated":   {store.ErrNotReplicated, 1},
	"store.ErrUnavailable":     {store.ErrUnavailable, 1},
	"store.ErrAddress":         {store.ErrAddress, 1}, // the commands make it a wrong invocation
	"store.ErrProtocol":        {store.ErrProtocol, 11},
	"store.ErrExhausted":       {store.ErrExhausted, 1},
	"store.ErrServiceBusy":     {store.ErrServiceBusy, 1},
	"store.ErrIntegrity":       {store.ErrIntegrity, 11},
	"store.ErrNoSchema":        {store.ErrNoSchema, 13},
	"store.ErrSchema":          {store.ErrSchema, 13},
	"store.ErrNoNamespace":     {store.ErrNoNamespace, 13},
	"store.ErrConfig":          {store.ErrConfig, 13},
	"store.ErrBinding":         {store.ErrBinding, 13},
	"store.ErrBindRefused":     {store.ErrBindRefused, 13},
	"broker.ErrUnavailable":    {broker.ErrUnavailable, 1},
	"broker.ErrUnknownOutcome": {broker.ErrUnknownOutcome, 12},
	"broker.ErrRefused":        {broker.ErrRefused, 1},
	"broker.ErrNoTopic":        {broker.ErrNoTopic, 11},
	"broker.ErrTopicExists":    {broker.ErrTopicExists, 1},
	"broker.ErrSession":        {broker.ErrSession, 1},
	"broker.ErrUnreadable":     {broker.ErrUnreadable, 1},
	"broker.ErrClosed":         {broker.ErrClosed, 1},
	"worker.ErrIntegrity":      {worker.ErrIntegrity, 11},
	"worker.ErrUnresolved":     {worker.ErrUnresolved, 12},
	"worker.ErrRetries":        {worker.ErrRetries, 1},
	"delivery.ErrUnresolved":   {delivery.ErrUnresolved, 12},
	"journal.ErrFormat":        {journal.ErrFormat, 13},
	"journal.ErrChecksum":      {journal.ErrChecksum, 11},
	"provision.ErrChanged":     {provision.ErrChanged, 1},
	"provision.ErrUnbound":     {provision.ErrUnbound, 2},
	"provision.ErrUnresolved":  {provision.ErrUnresolved, 12},
	"provision.ErrSameTopic":   {provision.ErrSameTopic, 2},
	"provision.ErrTopicName":   {provision.ErrTopicName, 2},
	"recovery.ErrDestination":  {recovery.ErrDestination, 13},
	"recovery.ErrUncertain":    {recovery.ErrUncertain, 12},
	"recovery.ErrName":         {recovery.ErrName, 2},
	"recovery.ErrPartitions":   {recovery.ErrPartitions, 2},
	"recovery.ErrHistory":      {recovery.ErrHistory, 11},
	"verify.ErrUnbound":        {verify.ErrUnbound, 2},
}

// I25: every error that a package of the roles and commands exports has one exit code, also where it was wrapped; which of two
// counts that came together is fixed.
// Shows I25.
func TestI25EveryErrorHasOneCode(t *testing.T) {
	var exported []string
	for _, pkg := range []string{"store", "broker", "worker", "delivery", "journal", "provision", "recovery", "verify"} {
		exported = append(exported, sentinelsOf(t, pkg)...)
	}
	slices.Sort(exported)
	if d := cmp.Diff(exported, slices.Sorted(maps.Keys(codes))); d != "" {
		t.Errorf("errors without a code here (-), or that are gone (+):\n%s", d)
	}
	for name, c := range codes {
		for _, err := range []error{c.err, fmt.Errorf("run worker: %w", c.err), fmt.Errorf("%w: %w", errors.New("other"), c.err)} {
			if got := classify(err); got != c.code {
				t.Errorf("%s, as %q: code %d, want %d", name, err, got, c.code)
			}
		}
		named := 0
		for _, class := range classes {
			if slices.Contains(class.sentinels, c.err) {
				named++
			}
		}
		if named > 1 {
			t.Errorf("%s is in %d classes", name, named)
		}
	}
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, 0},
		{&broker.IdentityError{}, 11},
		{&broker.RangeError{}, 11},
		{fmt.Errorf("%w: %w", worker.ErrUnresolved, store.ErrUnavailable), 12},
		{fmt.Errorf("%w: %w", worker.ErrRetries, store.ErrFence), 10},
		{fmt.Errorf("%w: %w", store.ErrFence, store.ErrCommitUnknown), 12},
		{fmt.Errorf("%w: %w", store.ErrCommitUnknown, store.ErrIntegrity), 11},
		{&delivery.StoppedError{}, 11},
	} {
		if got := classify(c.err); got != c.code {
			t.Errorf("%v: code %d, want %d", c.err, got, c.code)
		}
	}
}

// sentinelsOf returns the error values that a package exports, as package.Name.
func sentinelsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of %s: %v", pkg, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			vars, ok := d.(*ast.GenDecl)
			if !ok || vars.Tok != token.VAR {
				continue
			}
			for _, s := range vars.Specs {
				for _, id := range s.(*ast.ValueSpec).Names {
					if strings.HasPrefix(id.Name, "Err") {
						names = append(names, pkg+"."+id.Name)
					}
				}
			}
		}
	}
	return names
}
