package health

import (
	"context"
	"time"

	"amends/internal/broker"
	"amends/internal/store/postgres/reader"
)

// awayBudget is how long Away asks both services, at the same time.
const awayBudget = 3 * time.Second

// Away asks the two services whether they answer, and returns why each does not: the database for its clock, the broker as Answers
// does. An error is nil of a service that answers, or that Look does not ask.
func (l *Look) Away(ctx context.Context) (database, source error) {
	ctx, cancel := context.WithTimeout(ctx, awayBudget)
	defer cancel()
	asked := make(chan error, 1)
	go func() { asked <- l.Topic.Answers(ctx) }()
	database = l.Namespace.Look(ctx, func(s *reader.Snapshot) error {
		_, err := s.Moment(ctx)
		return err
	})
	return database, <-asked
}

// Answers returns nil if the broker answers and the source topic is the one that Topic names, and why not otherwise.
func (t *Topic) Answers(ctx context.Context) error {
	if t == nil {
		return nil
	}
	found, err := t.Admin.Incarnation(ctx, t.Name)
	if err == nil && found != t.Incarnation {
		err = &broker.IdentityError{Topic: t.Name, What: "incarnation", Want: t.Incarnation, Found: found}
	}
	return err
}
