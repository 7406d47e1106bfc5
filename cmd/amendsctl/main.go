// Command amendsctl is amends under flat command names, such as source-create, for scripts.
package main

import (
	"os"

	"amends/internal/cli"
)

func main() { os.Exit(cli.Main(cli.Flat)) }
