package bus

import "errors"

var (
	// ErrUnavailable says that NATS did not take a message: it is not
	// connected, did not answer in time or refused. What is owed stands in
	// Postgres; publish again later.
	ErrUnavailable = errors.New("bus: NATS unavailable")
	// ErrPermanent is wrapped by a handler whose job cannot succeed however
	// often it is tried. The job goes to OnDead at once.
	ErrPermanent = errors.New("bus: permanent failure")
	// ErrExhausted is given to OnDead for a job that used up its deliveries
	// without any worker living to say why.
	ErrExhausted = errors.New("bus: deliveries exhausted without an answer")
	// ErrStopped is the cause of a handler's cancelled context when the
	// consumer stops; the job goes to another worker without delay.
	ErrStopped = errors.New("bus: consumer stopped")
	// ErrClosed is returned by what is used after Close.
	ErrClosed = errors.New("bus: closed")
	// ErrMalformed is a message that this package did not write.
	ErrMalformed = errors.New("bus: malformed message")
	// ErrVersion is a message of a newer version of this package; another
	// node may be able to read it.
	ErrVersion = errors.New("bus: unknown message version")
)
