package embedded

import "context"

// InstallByNPM is what Find does last.
func InstallByNPM(ctx context.Context, cache string) (Binaries, error) {
	return installByNPM(ctx, cache, nil)
}

// WithoutNamespace lets root's server run under another uid, as where the kernel allows no user namespaces.
func WithoutNamespace(o PostgresOptions) PostgresOptions {
	o.noNamespace = true
	return o
}
