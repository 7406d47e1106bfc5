package process

import (
	"fmt"
	"os"
	"path/filepath"
)

// UserCache is the directory for what can be fetched or made again: amends under the user's cache directory.
func UserCache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache directory: %w", err)
	}
	return filepath.Join(dir, "amends"), nil
}
