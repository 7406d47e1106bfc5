package embedded

import "amends/internal/embedded/process"

// The errors of the parts, for callers that branch.
type (
	// HeldError says that another process holds the data.
	HeldError = process.HeldError
	// PortError says that an address that was asked for is taken.
	PortError = process.PortError
	// SpaceError says that a volume is full.
	SpaceError = process.SpaceError
)

// ErrPort: a number that was asked for is not that of a port.
var ErrPort = process.ErrPort
