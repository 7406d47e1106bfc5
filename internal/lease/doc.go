// Package lease keeps the leases of the delivery services (S9): it acquires, renews, waits as a standby and releases.
//
//	        busy: wait (or fail with NoStandby)
//	         +----+
//	         v    |
//	Hold -> AcquireService -> work runs -> ReleaseService
//	         ^                  |  renewed every second, one statement a process
//	         |                  |  lost: work is cancelled with a cause that is store.ErrFence
//	         +------------------+
//	   the database server is another one (S12): taken again
//
// Owns: when to try, when to renew, and whose work ends with which lease.
//
// Does not own: what fences. Each commit of the work compares the term and nonce of the lease with its position row in
// the store; nothing here is needed for safety, and nothing is inferred from a clock of this machine.
//
// Fails with: store.ErrServiceBusy where no standby is wanted, store.ErrFence when a lease was lost, and what work returns.
package lease
