//go:build !race

package acceptance

const raced = false
