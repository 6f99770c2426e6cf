package mingleclient

import (
	"context"
	"net/http"
	"time"
)

// wireTimeout is the longest time of a call, unless another is given.
const wireTimeout = time.Minute

// ClientConfig is how a client calls, unless a call has options of its own. The zero value is ready for use.
type ClientConfig struct {
	// Token identifies the caller: the text after Bearer. Empty for none.
	Token string

	// TokenSource returns the token before each request, instead of Token.
	TokenSource func(context.Context) (string, error)

	// Session is the session of the calls; nil for a new one.
	Session *Session

	// Timeout is the longest time of a call, all attempts included; a minute if it is 0. The context of
	// a call may end it earlier.
	Timeout time.Duration

	// Retries is the number of further attempts of a call whose error is retryable, or after which it is not
	// known if the call took effect. The call runs once: all attempts have one idempotency key.
	Retries int

	// HTTPClient sends the requests; nil for one that does not follow redirects.
	HTTPClient *http.Client
}

// wireOptions has the options of one call.
type wireOptions struct {
	session  *Session
	timeout  time.Duration
	retries  int
	deadline *time.Duration
	key      string
	limit    *int
}

// CallOption is an option of a call of a transaction.
type CallOption interface {
	wireCall(*wireOptions)
}

// ShowOption is an option of Show, which reads an object.
type ShowOption interface {
	wireShow(*wireOptions)
}

// CommonOption is an option of a call of a transaction, and of Show.
type CommonOption struct {
	set func(*wireOptions)
}

func (o CommonOption) wireCall(options *wireOptions) {
	if o.set != nil {
		o.set(options)
	}
}

func (o CommonOption) wireShow(options *wireOptions) {
	o.wireCall(options)
}

type wireCallOption func(*wireOptions)

func (o wireCallOption) wireCall(options *wireOptions) {
	o(options)
}

type wireShowOption func(*wireOptions)

func (o wireShowOption) wireShow(options *wireOptions) {
	o(options)
}

// WithSession chooses the session, instead of the client's; nil is the client's.
func WithSession(session *Session) CommonOption {
	return CommonOption{func(options *wireOptions) {
		if session != nil {
			options.session = session
		}
	}}
}

// WithTimeout sets the longest time of the call, all attempts included.
func WithTimeout(timeout time.Duration) CommonOption {
	return CommonOption{func(options *wireOptions) { options.timeout = timeout }}
}

// WithRetries sets the number of further attempts; see [ClientConfig].
func WithRetries(retries int) CommonOption {
	return CommonOption{func(options *wireOptions) { options.retries = retries }}
}

// WithDeadline sets how long the server repeats a call that conflicts, and waits for others. It counts in
// milliseconds.
func WithDeadline(deadline time.Duration) CallOption {
	return wireCallOption(func(options *wireOptions) { options.deadline = &deadline })
}

// WithIdempotencyKey gives the call a key of 1 to 128 visible characters of ASCII. Calls with one key run
// once.
func WithIdempotencyKey(key string) CallOption {
	return wireCallOption(func(options *wireOptions) { options.key = key })
}

// WithLimit sets the largest number of items that Show returns of each collection.
func WithLimit(limit int) ShowOption {
	return wireShowOption(func(options *wireOptions) { options.limit = &limit })
}
