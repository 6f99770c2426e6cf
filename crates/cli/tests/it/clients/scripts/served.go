// The answers of a real server.
package main

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"workshop/check"
	. "workshop/clients/bank"
)

func main() {
	ctx, address, token := context.Background(), os.Args[1], os.Args[2]
	_, err := check.Must(NewClient(address, ClientConfig{})).Deposit(ctx, Account{Number: "1"}, 1)
	check.Is(err, ErrAccess)
	client := check.Must(NewClient(address+"/", ClientConfig{Token: token, Retries: 3}))
	ana := Customer{Name: "ana"}
	source := check.Must(client.OpenAccount(ctx, "1", ana))
	target := check.Must(client.OpenAccount(ctx, "2", Customer{Name: "bob"}))
	check.Equal(source, Account{Number: "1"})
	_, err = client.OpenAccount(ctx, "1", ana)
	check.Is(err, ErrExists)

	// Repeated calls with one key take effect once.
	once := WithIdempotencyKey("once")
	check.Equal(check.Must(client.Deposit(ctx, source, 100, once)), int64(100))
	check.Equal(check.Must(client.Deposit(ctx, source, 100, once)), int64(100))
	_, err = client.Deposit(ctx, source, 50, once)
	check.Is(err, ErrInvalidCall)
	err = client.Transfer(ctx, source, target, 1000)
	check.Is(err, ErrRequire)
	check.Is(err, RequireCode("too_low"))
	check.Equal(err.Error(), "the balance is too low")

	// Later calls of a session see the writes of earlier ones, even if those ran concurrently.
	early := check.Must(client.DepositUntil(ctx, StoreAccounts, source, 1))
	check.Equal(early, Early[int64]{Result: 101, IsKnown: true})
	var transfers sync.WaitGroup
	for range 12 {
		transfers.Add(1)
		go func() {
			defer transfers.Done()
			err := client.Transfer(ctx, source, target, 1)
			check.True(err == nil, err)
		}()
	}
	transfers.Wait()
	resumed := client.WithSession(NewSession(client.Session().Token()))
	check.Equal(len(check.Must(resumed.Messages(ctx, ana, 100))), 12)
	check.True(len(strings.Split(client.Session().Token(), ",")) <= 8, client.Session().Token())
	account, found, err := Show(ctx, client, target)
	check.True(err == nil && found, err)
	check.Equal([]int64{account.Balance, int64(len(account.History))}, []int64{12, 12})
	_, err = client.Messages(ctx, ana, 1, WithSession(NewSession("made up")))
	check.Is(err, ErrInvalidSession)
	_, err = client.Messages(ctx, ana, 1, WithDeadline(-time.Millisecond))
	check.Is(err, ErrInvalidCall)
	client.CloseIdleConnections()
}
