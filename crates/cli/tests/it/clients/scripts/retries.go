// Calls that are made again.
package main

import (
	"context"
	"os"

	"workshop/check"
	. "workshop/clients/messagegroups"
)

func main() {
	ctx, rust := context.Background(), Group{Name: "rust"}
	client := check.Must(NewClient(os.Args[1], ClientConfig{Retries: 1}))
	fails := func(kind error, options ...CallOption) {
		_, err := client.AddPost(ctx, rust, "hello", options...)
		check.Is(err, kind)
	}
	check.Equal(check.Must(client.AddPost(ctx, rust, "hello", WithRetries(2))), int64(3))
	fails(ErrRequire)
	fails(ErrUnavailable, WithRetries(0))
	check.Equal(check.Must(client.AddPost(ctx, rust, "hello", WithIdempotencyKey("mine"))), int64(4))
	fails(ErrUnavailable)
	shown, found, err := Show(ctx, client, rust)
	check.True(err == nil && found && shown.Closed, err)
	check.Equal(shown.Members, []User{{Name: "ana"}})
}
