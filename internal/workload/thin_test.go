//go:build !race

package workload

// thin is by how much the loops of long tests are divided.
const thin = 1
