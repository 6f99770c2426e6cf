// More calls at once than a session takes.
package main

import (
	"context"
	"os"
	"sync"

	"workshop/check"
	"workshop/clients/messagegroups"
)

func main() {
	client := check.Must(messagegroups.NewClient(os.Args[1], messagegroups.ClientConfig{}))
	var calls sync.WaitGroup
	for range 10 {
		calls.Add(1)
		go func() {
			defer calls.Done()
			check.Equal(check.Must(client.AddPost(context.Background(), messagegroups.Group{Name: "rust"}, "hello")), int64(1))
		}()
	}
	calls.Wait()
}
