// Command amends-devstack runs Kafka and PostgreSQL for everyday work without containers: make up and make down use it.
package main

import (
	"context"
	"os"

	"amends/internal/devstack"
)

func main() { os.Exit(devstack.Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }
