//go:build !race

package oracle

// thin is by how much the loops of long tests are divided.
const thin = 1
