package mingleclient

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// wirePause is the wait before the second attempt, and wirePauseMax the longest one before any.
	wirePause    = 50 * time.Millisecond
	wirePauseMax = 5 * time.Second
	// wireIdleMax is the number of connections without work that are kept.
	wireIdleMax = 64
	// wireKeyBytes is the length of an idempotency key that the client draws.
	wireKeyBytes = 16
)

// wireConn sends requests to a server.
type wireConn struct {
	base    string
	config  ClientConfig
	client  *http.Client
	session *Session
}

// wireConnect returns a connection to the server at an address.
func wireConnect(address string, config ClientConfig) (*wireConn, error) {
	parsed, err := url.Parse(address)
	isBare := err == nil && parsed.RawQuery == "" && parsed.Fragment == "" && parsed.User == nil
	if !isBare || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Hostname() == "" {
		return nil, fmt.Errorf("expected a URL such as https://shop.example, found %s", wireShown(address))
	}
	client := config.HTTPClient
	if client == nil {
		client = wireHTTPClient()
	}
	base := parsed.Scheme + "://" + parsed.Host + strings.TrimRight(parsed.EscapedPath(), "/")
	conn := &wireConn{base: base, config: config, client: client}
	return conn.wireWith(config.Session), nil
}

func wireHTTPClient() *http.Client {
	// A redirect would be followed with a token of this server.
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if usual, ok := http.DefaultTransport.(*http.Transport); ok {
		transport := usual.Clone()
		transport.MaxIdleConnsPerHost = wireIdleMax
		client.Transport = transport
	}
	return client
}

// wireWith returns the same connection for another session; a new one if it is nil.
func (c *wireConn) wireWith(session *Session) *wireConn {
	if session == nil {
		session = new(Session)
	}
	if c == nil {
		return nil
	}
	other := *c
	other.session = session
	return &other
}

// wireSession returns the session of the calls.
func (c *wireConn) wireSession() *Session {
	if c == nil {
		return new(Session)
	}
	return c.session
}

// wireClose closes the connections that have no work.
func (c *wireConn) wireClose() {
	if c != nil {
		c.client.CloseIdleConnections()
	}
}

// wireCall is a call of a transaction, with its arguments.
type wireCall struct {
	transaction string
	writer      wireWriter
}

// wireNewCall begins a call.
func wireNewCall(transaction string) *wireCall {
	call := &wireCall{transaction: transaction}
	call.writer.wireBegin()
	return call
}

// wireArgument adds an argument to a call.
func wireArgument[T any](call *wireCall, name string, of wireType[T], value T) {
	call.writer.name(name)
	wirePart(&call.writer, name, of, value)
}

// wireResult makes a call, and returns its result.
func wireResult[T any](ctx context.Context, conn *wireConn, call *wireCall, result wireReads[T], options []CallOption) (T, error) {
	early, err := wireMade(ctx, conn, call, "", result, options)
	return early.Result, err
}

// wireEarly makes a call that returns once a store has committed.
func wireEarly[T any](ctx context.Context, conn *wireConn, call *wireCall, until Store, result wireReads[T], options []CallOption) (Early[T], error) {
	if until == "" {
		return Early[T]{}, &ArgumentError{Path: "until", Problem: "expected the name of a store, found none"}
	}
	return wireMade(ctx, conn, call, until, result, options)
}

func wireMade[T any](ctx context.Context, conn *wireConn, call *wireCall, until Store, result wireReads[T], options []CallOption) (early Early[T], err error) {
	if conn == nil {
		return early, wireNotSent(errors.New("expected a client that NewClient returned, found an empty one"))
	}
	call.writer.wireEnd()
	if call.writer.err != nil {
		return early, call.writer.err
	}
	set := conn.options()
	for _, option := range options {
		if option != nil {
			option.wireCall(&set)
		}
	}
	query := url.Values{}
	if set.deadline != nil {
		query.Set("deadline_ms", strconv.FormatInt(wireMilliseconds(*set.deadline), 10))
	}
	if until != "" {
		query.Set("until", string(until))
	}
	request := wireRequest{method: http.MethodPost, body: call.writer.body, key: set.key}
	request.path = wireWithQuery("/v1/transactions/"+wireEscaped(call.transaction), query)
	if set.key == "" && set.retries > 0 {
		if request.key, err = wireNewKey(); err != nil {
			return early, wireNotSent(err)
		}
	}
	answer, err := conn.run(ctx, request, set)
	if err != nil {
		return early, err
	}
	r := new(wireReader)
	members := r.wireObject(answer.json)
	if found := members["follows"]; found != nil {
		for _, name := range wireField(r, members, "follows", wireList(wireString{})) {
			early.Follows = append(early.Follows, Store(name))
		}
	}
	early.IsKnown = until == "" || len(early.Follows) == 0 || members["result"] != nil
	if early.IsKnown {
		early.Result = wireField(r, members, "result", result)
	}
	return early, r.failure(answer.status)
}

// wireShow reads an object; found is false if there is none.
func wireShow[F any](ctx context.Context, conn *wireConn, of Handle[F], options []ShowOption) (fields F, found bool, err error) {
	if conn == nil {
		return fields, false, wireNotSent(errors.New("expected a client that NewClient returned, found an empty one"))
	}
	if of == nil {
		return fields, false, &ArgumentError{Path: "of", Problem: "expected a handle, found nil"}
	}
	path, err := of.wirePath()
	if err != nil {
		return fields, false, err
	}
	set := conn.options()
	for _, option := range options {
		if option != nil {
			option.wireShow(&set)
		}
	}
	query := url.Values{}
	if set.limit != nil {
		query.Set("limit", strconv.Itoa(*set.limit))
	}
	request := wireRequest{method: http.MethodGet, path: wireWithQuery("/v1/objects/"+path, query)}
	answer, err := conn.run(ctx, request, set)
	if err != nil || answer.status == http.StatusNotFound {
		return fields, false, err
	}
	r := &wireReader{path: []string{"the object"}}
	fields = of.wireFields().wireRead(r, answer.json)
	return fields, r.err == nil, r.failure(answer.status)
}

func (r *wireReader) failure(status int) error {
	if r.err == nil {
		return nil
	}
	return wireFailure(ErrProtocol, Error{Message: r.err.Error(), Code: "protocol", Status: status})
}

func (c *wireConn) options() wireOptions {
	timeout := c.config.Timeout
	if timeout == 0 {
		timeout = wireTimeout
	}
	return wireOptions{session: c.session, timeout: timeout, retries: c.config.Retries}
}

// wireMilliseconds returns a time in milliseconds; parts of one count as one.
func wireMilliseconds(length time.Duration) int64 {
	whole := length.Milliseconds()
	if length%time.Millisecond > 0 {
		whole++
	}
	return whole
}

func wireNewKey() (string, error) {
	drawn := make([]byte, wireKeyBytes)
	_, err := rand.Read(drawn)
	return hex.EncodeToString(drawn), err
}

func wireWithQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

type wireRequest struct {
	method string
	path   string
	body   []byte
	key    string
}

// runsOnce reports that the request does nothing more when it is made again.
func (r wireRequest) runsOnce() bool {
	return r.method == http.MethodGet || r.key != ""
}

type wireAnswer struct {
	status int
	json   any
}

func wireNotSent(cause error) *Error {
	return wireFailure(ErrNotSent, Error{Message: "the call was not sent: " + cause.Error(), Code: "not-sent", cause: cause})
}

// run makes a request in its session, again and again if that is wanted.
func (c *wireConn) run(parent context.Context, request wireRequest, set wireOptions) (wireAnswer, error) {
	if parent == nil {
		return wireAnswer{}, wireNotSent(errors.New("expected a context, found nil"))
	}
	ctx, cancel := context.WithTimeout(parent, set.timeout)
	defer cancel()
	if err := set.session.enter(ctx); err != nil {
		return wireAnswer{}, wireNotSent(wireStopped(parent, err))
	}
	defer set.session.leave()
	for attempt := 0; ; attempt++ {
		answer, err := c.once(ctx, request, set.session)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil && err.Status == 0 {
			return answer, wireLateFailure(parent, set.timeout, attempt, err)
		}
		if attempt >= set.retries || !wireIsWorthwhile(err, request) || !wireWait(ctx, attempt, err.RetryAfter) {
			return answer, err
		}
	}
}

// wireStopped returns the reason why a call was stopped.
func wireStopped(parent context.Context, err error) error {
	if parent.Err() == nil {
		return err
	}
	if cause := context.Cause(parent); !errors.Is(cause, parent.Err()) {
		return fmt.Errorf("%w: %w", parent.Err(), cause)
	}
	return context.Cause(parent)
}

// wireLateFailure returns the error of a call whose time is over, or whose context has ended.
func wireLateFailure(parent context.Context, timeout time.Duration, attempt int, err *Error) *Error {
	cause := wireStopped(parent, context.DeadlineExceeded)
	if attempt == 0 && errors.Is(err, ErrNotSent) {
		return wireNotSent(cause)
	}
	message := fmt.Sprintf("no answer within %s", timeout)
	if parent.Err() != nil {
		message = "no answer: " + cause.Error()
	}
	return wireFailure(ErrNoAnswer, Error{Message: message, Code: "no-answer", cause: cause})
}

// wireIsWorthwhile reports that the same request may do better, and does nothing twice.
func wireIsWorthwhile(err *Error, request wireRequest) bool {
	return err.IsRetryable || errors.Is(err, ErrUnknownOutcome) && request.runsOnce()
}

// wireWait waits before another attempt, longer each time, and not the same for all; at least as long as the
// server asks for. It reports false at once if the call would not have the time.
func wireWait(ctx context.Context, attempt int, retryAfter time.Duration) bool {
	longest := min(wirePause<<min(attempt, 16), wirePauseMax)
	pause := longest/2 + mathrand.N(longest/2)
	pause = max(pause, retryAfter)
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= pause {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once makes a request one time.
func (c *wireConn) once(ctx context.Context, request wireRequest, session *Session) (wireAnswer, *Error) {
	sent := session.sent()
	made, err := c.request(ctx, request, sent)
	if err != nil {
		return wireAnswer{}, wireNotSent(err)
	}
	response, err := c.client.Do(made)
	var body []byte
	if err == nil {
		defer response.Body.Close()
		if learned := response.Header.Get("Mingle-Session"); learned != "" {
			session.learn(sent, learned)
		}
		body, err = io.ReadAll(response.Body)
	}
	if err != nil {
		message := fmt.Sprintf("no answer from %s: %s", c.base, err)
		about := Error{Message: message, Code: "no-answer", IsRetryable: request.runsOnce(), cause: err}
		return wireAnswer{}, wireFailure(ErrNoAnswer, about)
	}
	found, isJSON := wireParsed(body)
	if response.StatusCode == http.StatusOK && isJSON {
		return wireAnswer{response.StatusCode, found}, nil
	}
	problem := wireProblem(response, found, request)
	if request.method == http.MethodGet && problem.Code == "not-found" {
		return wireAnswer{http.StatusNotFound, nil}, nil
	}
	return wireAnswer{}, problem
}

func (c *wireConn) request(ctx context.Context, request wireRequest, sent []string) (*http.Request, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	token := c.config.Token
	if c.config.TokenSource != nil {
		found, err := c.config.TokenSource(ctx)
		if err != nil {
			return nil, fmt.Errorf("no token: %w", err)
		}
		token = found
	}
	var body io.Reader
	if request.body != nil {
		body = bytes.NewReader(request.body)
	}
	made, err := http.NewRequestWithContext(ctx, request.method, c.base+request.path, body)
	if err != nil {
		return nil, err
	}
	made.Header.Set("Accept", "application/json, application/problem+json")
	if request.body != nil {
		made.Header.Set("Content-Type", "application/json")
	}
	for _, header := range []struct{ name, before, value string }{
		{"Authorization", "Bearer ", token},
		{"Mingle-Session", "", strings.Join(sent, ", ")},
		{"Idempotency-Key", "", request.key},
	} {
		if header.value == "" {
			continue
		}
		if strings.ContainsFunc(header.value, func(c rune) bool { return c < ' ' || c > '~' }) {
			return nil, fmt.Errorf("expected visible characters of ASCII in the header %s", header.name)
		}
		made.Header.Set(header.name, header.before+header.value)
	}
	return made, nil
}

// wireParsed reads JSON, with its numbers as they are written.
func wireParsed(body []byte) (found any, isJSON bool) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&found) != nil {
		return nil, false
	}
	_, err := decoder.Token()
	return found, errors.Is(err, io.EOF)
}

// wireProblem returns the error that an answer tells of.
func wireProblem(response *http.Response, found any, request wireRequest) *Error {
	status := response.StatusCode
	about := Error{Status: status, RetryAfter: wireRetryAfter(response.Header.Get("Retry-After"))}
	members, _ := found.(map[string]any)
	text := func(name string) string {
		member, _ := members[name].(string)
		return member
	}
	about.Code = text("code")
	if about.Code == "" {
		// A machine between here and the server may have answered, and may have passed the call on.
		about.IsRetryable = slices.Contains([]int{429, 502, 503, 504}, status) && request.runsOnce()
		about.Code = "protocol"
		about.Message = fmt.Sprintf("the answer with status %d is none of a server of Mingle", status)
		return wireFailure(ErrProtocol, about)
	}
	for _, name := range []string{"detail", "title", "code"} {
		if about.Message == "" {
			about.Message = text(name)
		}
	}
	about.RequireCode, about.Store = RequireCode(text("require_code")), Store(text("store"))
	about.IsRetryable, _ = members["retryable"].(bool)
	committed, _ := members["committed"].([]any)
	for _, name := range committed {
		if name, ok := name.(string); ok {
			about.Committed = append(about.Committed, Store(name))
		}
	}
	return wireFailure(wireErrors[about.Code], about)
}

// wireRetryAfter reads the header of this name: seconds, or a date.
func wireRetryAfter(header string) time.Duration {
	const longest = 1_000_000_000
	if seconds, err := strconv.ParseUint(header, 10, 63); err == nil {
		return time.Duration(min(seconds, longest)) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}
