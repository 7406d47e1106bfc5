package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"amends/internal/usage"
)

func (a *app) version() *cobra.Command {
	cmd := &cobra.Command{Short: "Print the version and what it was built from", Example: "  amends version -o json", Args: usage.NoArgs}
	a.OutputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		asJSON, err := a.JSON()
		if err != nil {
			return err
		}
		v := build()
		if asJSON {
			return json.NewEncoder(a.Stdout).Encode(v)
		}
		_, err = fmt.Fprintf(a.Stdout, "amends %s %s %s %s\n", v.Version, v.Revision, v.Go, v.Platform)
		return err
	}
	return cmd
}

type buildInfo struct {
	Schema   int    `json:"schema"`
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func build() buildInfo {
	v := buildInfo{Schema: 1, Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
