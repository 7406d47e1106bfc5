// Package web is the server of the role of that name: whether the process lives, whether it is ready, its metrics and its version.
//
// Owns: what an address beyond loopback needs, the token, the limits of requests, and ending without cutting an answer off.
//
// Does not own: what the metrics are (telemetry), or what readiness means (roles, health).
//
// Fails with: ErrAddress and ErrToken for what was asked for wrongly, and the system's error for an address that cannot be had.
package web
