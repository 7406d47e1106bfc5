package cli

import (
	"errors"

	"amends/internal/broker"
	"amends/internal/delivery"
	"amends/internal/embedded"
	"amends/internal/journal"
	"amends/internal/manifest"
	"amends/internal/provision"
	"amends/internal/recovery"
	"amends/internal/report"
	"amends/internal/store"
	"amends/internal/usage"
	"amends/internal/verify"
	"amends/internal/worker"
)

// The exit codes of design section 8; 3 to 6 are a verification's own (S10).
const (
	exitDone       = 0
	exitFailure    = 1
	exitUsage      = 2
	exitFenced     = 10
	exitIntegrity  = 11
	exitUnresolved = 12
	exitMisfit     = 13
)

// errNoStandby: another process holds a lease, and -no-standby says not to wait for it.
var errNoStandby = errors.New("another process runs this role")

// statusError ends verify with its status's own code.
type statusError struct {
	report *verify.Report
	scale  int32 // of the namespace
}

func (e *statusError) Error() string { return "verify " + report.Headline(e.report, e.scale) }

// classes map errors to codes; the first that matches counts. A lost integrity outweighs an unknown outcome, and both
// outweigh what a restart can mend.
var classes = []struct {
	sentinels []error
	matches   func(error) bool
	code      int
}{
	{code: exitUsage, matches: isUsage, sentinels: []error{provision.ErrUnbound, provision.ErrSameTopic, provision.ErrTopicName, verify.ErrUnbound, recovery.ErrName, recovery.ErrPartitions}},
	{code: exitIntegrity, matches: isIdentity, sentinels: []error{store.ErrIntegrity, store.ErrProtocol, worker.ErrIntegrity, journal.ErrChecksum, broker.ErrNoTopic, recovery.ErrHistory}},
	{code: exitUnresolved, sentinels: []error{store.ErrCommitUnknown, broker.ErrUnknownOutcome, provision.ErrUnresolved, worker.ErrUnresolved, delivery.ErrUnresolved, recovery.ErrUncertain}},
	{code: exitFenced, sentinels: []error{store.ErrFence, errNoStandby}},
	{code: exitMisfit, sentinels: []error{store.ErrNoSchema, store.ErrSchema, store.ErrNoNamespace, store.ErrConfig, store.ErrBinding,
		store.ErrBindRefused, journal.ErrFormat, recovery.ErrDestination}},
}

// classify is the only place where an error becomes an exit code (I25).
func classify(err error) int {
	if err == nil {
		return exitDone
	}
	var status *statusError
	if errors.As(err, &status) {
		return status.report.Status.ExitCode()
	}
	var verdict *usage.Verdict
	if errors.As(err, &verdict) {
		return verdict.Code
	}
	for _, c := range classes {
		if c.matches != nil && c.matches(err) {
			return c.code
		}
		for _, s := range c.sentinels {
			if errors.Is(err, s) {
				return c.code
			}
		}
	}
	return exitFailure
}

func isUsage(err error) bool {
	return is[*usage.Error](err) || is[*manifest.Error](err) || is[*provision.ConfigError](err) || is[*provision.RefusedFile](err) ||
		is[*provision.FileError](err) || errors.Is(err, embedded.ErrPort)
}

func isIdentity(err error) bool { return is[*broker.IdentityError](err) || is[*broker.RangeError](err) }

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
