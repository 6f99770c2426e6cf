// What a session keeps of calls, one after another and side by side.
package main

import (
	"context"
	"os"
	"sync"
	"time"

	"workshop/check"
	. "workshop/clients/messagegroups"
)

func main() {
	ctx, rust := context.Background(), Group{Name: "rust"}
	token := func(context.Context) (string, error) { return "secret", nil }
	client := check.Must(NewClient(os.Args[1], ClientConfig{TokenSource: token}))
	post := func(client *Client, text string) {
		check.Equal(check.Must(client.AddPost(ctx, rust, text)), int64(1))
	}

	var both sync.WaitGroup
	for _, text := range []string{"one", "two"} {
		both.Add(1)
		go func() {
			defer both.Done()
			post(client, text)
		}()
	}
	both.Wait()
	now := client.Session().Token()
	check.True(now == "t1, t2" || now == "t2, t1", now)
	post(client, "three")
	check.Equal(client.Session().Token(), "t3")
	post(client, "four")
	// An answer without a token keeps the earlier tokens.
	post(client, "five")
	check.Equal(client.Session().Token(), "t4")
	kept := NewSession(" kept ")
	check.Equal(kept.Token(), "kept")
	post(client.WithSession(kept), "six")
	check.Equal([]string{kept.Token(), client.Session().Token()}, []string{"u1", "t4"})
	early := check.Must(client.AddPostUntil(ctx, StoreGroups, rust, "seven"))
	check.Equal(early, Early[int64]{Follows: []Store{StoreInboxes}})
	early = check.Must(client.AddPostUntil(ctx, StoreInboxes, rust, "eight", WithDeadline(1500*time.Millisecond)))
	check.Equal(early, Early[int64]{Result: 7, IsKnown: true})
	// A zero session is a new one.
	check.Equal(client.WithSession(nil).Session().Token(), new(Session).Token())
}
