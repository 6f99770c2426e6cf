// Answers that say when a call may be made again, and answers of machines between a client and its server.
package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"time"

	"workshop/check"
	. "workshop/clients/messagegroups"
)

const overloaded = `{"code": "overloaded", "retryable": true}`

// answer is one answer of a server: its header Retry-After or Location, its status and body.
type answer struct {
	header, value string
	status        int
	body          string
}

// against runs a call against a server that gives these answers; returns the error and the length of the call.
func against(answers []answer, options ...CallOption) (error, time.Duration, int) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next := answers[min(requests, len(answers)-1)]
		requests++
		if next.header != "" {
			w.Header().Set(next.header, next.value)
		}
		w.WriteHeader(next.status)
		_, _ = w.Write([]byte(next.body))
	}))
	defer server.Close()
	client := check.Must(NewClient(server.URL, ClientConfig{Token: "secret"}))
	begun := time.Now()
	_, err := client.AddPost(context.Background(), Group{Name: "rust"}, "hello", options...)
	return err, time.Since(begun), requests
}

func main() {
	good := answer{status: 200, body: `{"result": 1}`}
	err, length, requests := against([]answer{{"Retry-After", "1", 503, overloaded}, good}, WithRetries(1))
	check.True(err == nil && length >= time.Second && requests == 2, err, length)

	// A date counts, too; one that is over is no reason to wait.
	past := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	err, _, requests = against([]answer{{"Retry-After", past, 503, overloaded}, good}, WithRetries(1))
	check.True(err == nil && requests == 2, err)
	later := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for _, wait := range []string{"3600", later, "99999999999999999999"} {
		// The call has no time for the wait, so its error comes at once, with the wait if it is a number.
		err, length, requests = against([]answer{{"Retry-After", wait, 503, overloaded}}, WithRetries(5), WithTimeout(30*time.Second))
		var found *Error
		check.Is(err, ErrUnavailable)
		if wait == "99999999999999999999" {
			check.Equal(requests, 6)
			continue
		}
		check.True(errors.As(err, &found) && found.RetryAfter > 59*time.Minute, err)
		check.True(length < 20*time.Second && requests == 1, length, requests)
	}

	// The token is not sent to where an answer points.
	err, _, requests = against([]answer{{"Location", "/elsewhere", 307, ""}}, WithRetries(1))
	check.Is(err, ErrProtocol)
	check.Equal(requests, 1)
	for _, status := range []int{429, 502, 503, 504} {
		err, _, requests = against([]answer{{status: status, body: "<html>"}, good}, WithRetries(1))
		check.True(err == nil && requests == 2, status, err)
		err, _, requests = against([]answer{{status: status, body: "<html>"}, good})
		check.Is(err, ErrProtocol)
		check.Equal(requests, 1)
	}
	for _, body := range []string{`{"result": 1} {}`, `{"result": 1.5}`, `{"result": "+1"}`, `{}`, `{"result": 9223372036854775808}`, "", "[]", "\xff"} {
		err, _, _ = against([]answer{{status: 200, body: body}})
		check.Is(err, ErrProtocol)
	}
	err, _, _ = against([]answer{{status: 200, body: `{"result": "-9223372036854775808"}`}})
	check.True(err == nil, err)
}
