package session

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"amends/internal/store"
)

// credentials are user and password as whoever rotates them has them now. Connections that are open go on under what they
// were opened with.
type credentials struct {
	url   func() (string, error) // nil: they never change
	known atomic.Bool            // they were accepted once
}

// refresh gives a connection that is about to be opened the present user and password. Where it leads to stays as it was.
func (c *credentials) refresh(_ context.Context, to *pgx.ConnConfig) error {
	if c.url == nil {
		return nil
	}
	url, err := c.url()
	if err != nil {
		return c.unread(err)
	}
	now, err := pgx.ParseConfig(url)
	if err != nil {
		return c.unread(err)
	}
	to.User, to.Password = now.User, now.Password
	return nil
}

// unread returns what it means that credentials could not be read: those that were right before are being replaced, and the
// file is not there for a moment, or half of it is.
func (c *credentials) unread(err error) error {
	if c.known.Load() {
		return fmt.Errorf("%w: read credentials again: %v", store.ErrUnavailable, err)
	}
	return fmt.Errorf("read credentials again: %w", err)
}

// judge returns what the error of opening a connection means: credentials that are read again and were right before are being
// rotated, the server's and the reader's in some order, so that what does not fit yet is waited for.
func (c *credentials) judge(err error) error {
	switch {
	case err == nil:
		c.known.Store(true)
		return nil
	case c.url == nil || !c.known.Load() || errors.Is(err, context.Canceled):
		return err
	}
	if refused := code(err); refused == pgerrcode.InvalidPassword || refused == pgerrcode.InvalidAuthorizationSpecification {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}
