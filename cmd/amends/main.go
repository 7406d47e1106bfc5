// Command amends repairs what was published from a ledger that turned out wrong. Every command has a nested name.
package main

import (
	"os"

	"amends/internal/cli"
)

func main() { os.Exit(cli.Main(cli.Nested)) }
