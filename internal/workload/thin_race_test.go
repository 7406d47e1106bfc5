//go:build race

package workload

// thin is by how much the loops of long tests are divided: the race detector makes each step ten times as long.
const thin = 10
