// Each call meets another error.
package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"workshop/check"
	. "workshop/clients/messagegroups"
)

func main() {
	rust := Group{Name: "rust"}
	client := check.Must(NewClient(os.Args[1], ClientConfig{}))
	made := func(ctx context.Context, kind error, code string, options ...CallOption) *Error {
		result, err := client.AddPost(ctx, rust, "hello", options...)
		check.Equal(result, int64(0))
		var found *Error
		check.True(errors.As(err, &found), err)
		check.Equal(found.Code, code)
		if kind != nil {
			check.Is(err, kind)
		}
		return found
	}
	failure := func(kind error, code string, options ...CallOption) *Error {
		return made(context.Background(), kind, code, options...)
	}

	refused := failure(ErrRequire, "require")
	check.Equal([]any{refused.Error(), refused.RequireCode, refused.Status}, []any{"no", RequireCode("closed"), 422})
	check.Equal([]any{refused.IsRetryable, refused.Committed, refused.Store}, []any{false, []Store(nil), Store("")})
	check.Is(refused, RequireCode("closed"))
	for _, other := range []error{RequireCode("open"), RequireCode(""), ErrExists, ErrNoAnswer, context.Canceled} {
		check.True(!errors.Is(refused, other), other)
	}
	check.Equal(failure(ErrExists, "exists").Error(), "it exists")
	check.Equal(failure(ErrTaken, "taken").Error(), "another has it")
	conflict := failure(ErrConflict, "conflict")
	check.True(conflict.IsRetryable && conflict.Store == StoreGroups, conflict)
	down := failure(ErrStore, "store")
	check.True(!down.IsRetryable && down.Store == StoreInboxes, down)
	incomplete := failure(ErrIncomplete, "incomplete")
	check.Equal(incomplete.Committed, []Store{StoreGroups})
	check.Equal(incomplete.Store, StoreInboxes)
	unknown := failure(ErrUnknownOutcome, "unknown")
	check.True(!errors.Is(unknown, ErrNoAnswer), unknown)
	failure(ErrResultGone, "result-gone")
	failure(ErrUnavailable, "overloaded")
	failure(ErrAccess, "unauthenticated")
	check.Is(failure(ErrInvalidSession, "invalid-session"), ErrInvalidCall)
	failure(ErrInvalidCall, "limit")
	// A code that is not known yet.
	other := failure(nil, "toString")
	check.True(!errors.Is(other, ErrRequire) && !errors.Is(other, ErrProtocol), other)
	proxy := failure(ErrProtocol, "protocol")
	check.True(proxy.Status == 502 && !proxy.IsRetryable, proxy)
	failure(ErrProtocol, "protocol")
	wrong := failure(ErrProtocol, "protocol")
	check.True(strings.Contains(wrong.Error(), `expected an int as result, found "twelve"`), wrong)
	failure(ErrProtocol, "protocol")
	_, found, err := Show(context.Background(), client, rust)
	check.True(!found && err == nil, err)
	closed := failure(ErrNoAnswer, "no-answer")
	check.Is(closed, ErrUnknownOutcome)
	check.True(!closed.IsRetryable && closed.Status == 0 && errors.Unwrap(closed) != nil, closed)
	late := failure(ErrNoAnswer, "no-answer", WithTimeout(200*time.Millisecond))
	check.Equal(late.Error(), "no answer within 200ms")
	check.Is(late, context.DeadlineExceeded)
	stopped(made)
	unsent(client)
}

// stopped claims what becomes of calls whose context ends.
func stopped(made func(context.Context, error, string, ...CallOption) *Error) {
	ctx, stop := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	time.AfterFunc(100*time.Millisecond, func() { stop(enough) })
	err := made(ctx, ErrNoAnswer, "no-answer")
	check.Is(err, context.Canceled)
	check.Is(err, enough)
	// A call that was stopped before it began is not sent.
	err = made(ctx, ErrNotSent, "not-sent")
	check.Is(err, context.Canceled)
	check.True(!errors.Is(err, ErrUnknownOutcome), err)
}

// unsent claims that wrong arguments, options and addresses are refused before a request.
func unsent(client *Client) {
	ctx := context.Background()
	var wrong *ArgumentError
	_, err := client.AddPost(ctx, Group{Name: "a"}, "\xff")
	check.True(errors.As(err, &wrong) && wrong.Path == "post", err)
	_, err = client.AddPost(ctx, Group{Name: "\xff"}, "hello")
	check.True(errors.As(err, &wrong) && wrong.Path == "group.Name", err)
	_, _, err = Show(ctx, client, Group{Name: "\xff"})
	check.True(errors.As(err, &wrong) && wrong.Path == "Group.Name", err)
	_, _, err = Show[GroupFields](ctx, client, nil)
	check.True(errors.As(err, &wrong), err)
	_, err = client.AddPostUntil(ctx, "", Group{}, "")
	check.True(errors.As(err, &wrong) && wrong.Path == "until", err)
	_, err = client.AddPost(ctx, Group{}, "", WithIdempotencyKey("a\r\nb"))
	check.Is(err, ErrNotSent)
	_, err = client.AddPost(nil, Group{}, "") //nolint:staticcheck // A missing context is an error, and no panic.
	check.Is(err, ErrNotSent)
	_, err = new(Client).AddPost(ctx, Group{}, "", nil)
	check.Is(err, ErrNotSent)
	new(Client).WithSession(new(Client).Session()).CloseIdleConnections()
	noToken := errors.New("no token today")
	source := func(context.Context) (string, error) { return "", noToken }
	without := check.Must(NewClient(os.Args[1], ClientConfig{TokenSource: source}))
	_, err = without.AddPost(ctx, Group{}, "")
	check.Is(err, ErrNotSent)
	check.Is(err, noToken)
	for _, address := range []string{"shop.example", "ftp://shop.example", "http://", "http://a?b", "http://u:p@a", ":"} {
		_, err := NewClient(address, ClientConfig{})
		check.True(err != nil && strings.Contains(err.Error(), "expected a URL"), address)
	}
}
