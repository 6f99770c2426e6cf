package mingleclient

import (
	"errors"
	"time"
)

// Error is the reason why a call has no result. [errors.Is] compares it with the errors that begin with
// Err, such as [ErrRequire], and with a [RequireCode].
type Error struct {
	// Message says what happened.
	Message string

	// Code is the server's name for it.
	Code string

	// Status is the status of the answer; 0 if there was no answer.
	Status int

	// RequireCode is the code of the require that failed, if it has one.
	RequireCode RequireCode

	// Committed has the stores that have committed.
	Committed []Store

	// Store is the store that the error is about, if there is one.
	Store Store

	// IsRetryable is true if the same call may succeed later, and does nothing twice.
	IsRetryable bool

	// RetryAfter is the time after which it may, if the server named one.
	RetryAfter time.Duration

	kind  *wireKind
	cause error
}

// Error returns the message.
func (e *Error) Error() string {
	return e.Message
}

// Unwrap returns the error that caused this one, such as [context.Canceled]; nil if the server answered.
func (e *Error) Unwrap() error {
	return e.cause
}

// Is reports that the error is of a kind, such as [ErrRequire], or has a [RequireCode].
func (e *Error) Is(target error) bool {
	if code, ok := target.(RequireCode); ok {
		return code != "" && e.RequireCode == code
	}
	for kind := e.kind; kind != nil; kind = kind.of {
		if target == error(kind) {
			return true
		}
	}
	return false
}

// RequireCode is the code of a require of the program, for [errors.Is]:
//
//	if errors.Is(err, RequireCode("sold_out")) {
type RequireCode string

// Error returns the code.
func (c RequireCode) Error() string {
	return string(c)
}

// ArgumentError is the reason why an argument cannot be sent, or not exactly. Nothing was sent.
type ArgumentError struct {
	// Path is the argument and the place in it, such as "items[2].count".
	Path string

	// Problem says what was expected and what was found.
	Problem string
}

// Error returns the path and the problem.
func (e *ArgumentError) Error() string {
	return e.Path + ": " + e.Problem
}

// wireKind is a kind of error; another kind may contain it.
type wireKind struct {
	about string
	of    *wireKind
}

func (k *wireKind) Error() string {
	return k.about
}

func wireKindOf(about string, of *wireKind) *wireKind {
	return &wireKind{about: about, of: of}
}

// These are the kinds of errors; the variables for callers follow.
var (
	wireUnknown = wireKindOf("the outcome of the call is not known", nil)
	wireInvalid = wireKindOf("the call is invalid", nil)
)

// ErrRequire is the kind of error of a require that failed. Nothing was written.
var ErrRequire error = wireKindOf("a require of the program failed", nil)

// ErrExists is the kind of error of a new whose object exists. Nothing was written.
var ErrExists error = wireKindOf("the object exists", nil)

// ErrTaken is the kind of error of a write of a unique, of which another object has the values. Nothing was written.
var ErrTaken error = wireKindOf("another object has the same values", nil)

// ErrConstraint is the kind of error of a rule of the database that forbids the call. Nothing was written.
var ErrConstraint error = wireKindOf("a rule of the database forbids the call", nil)

// ErrConflict is the kind of error of a call that met others until its deadline. This attempt wrote nothing.
var ErrConflict error = wireKindOf("other calls were in the way", nil)

// ErrStore is the kind of error of a store that failed, or that waits for a transaction that cannot
// be finished. Nothing was written.
var ErrStore error = wireKindOf("a store failed", nil)

// ErrIncomplete is the kind of error of a call that some stores have committed, and one has not: the rest
// follows by itself.
var ErrIncomplete error = wireKindOf("some stores have yet to commit", nil)

// ErrUnknownOutcome is the kind of error of a call that may have taken effect: ask again with the same
// idempotency key.
var ErrUnknownOutcome error = wireUnknown

// ErrNoAnswer is the kind of error of a request without an answer, or without one in time. It is also an
// [ErrUnknownOutcome].
var ErrNoAnswer error = wireKindOf("no answer came", wireUnknown)

// ErrNotSent is the kind of error of a call that ended before it was sent. Nothing was written.
var ErrNotSent error = wireKindOf("the call was not sent", nil)

// ErrResultGone is the kind of error of a call that took effect, and whose result is not known any more.
var ErrResultGone error = wireKindOf("the result is not known any more", nil)

// ErrUnavailable is the kind of error of a server that cannot take the call now. Nothing was written.
var ErrUnavailable error = wireKindOf("the server cannot take the call now", nil)

// ErrInvalidCall is the kind of error of a call that is wrong, or too large. Nothing was written.
var ErrInvalidCall error = wireInvalid

// ErrInvalidSession is the kind of error of a session that is not one of the server's: go on with a new one.
// Nothing was written. It is also an [ErrInvalidCall].
var ErrInvalidSession error = wireKindOf("the session is not one of this server's", wireInvalid)

// ErrAccess is the kind of error of a caller that the server does not know, or does not let in. Nothing was
// written.
var ErrAccess error = wireKindOf("the server does not let the caller in", nil)

// ErrProtocol is the kind of error of an answer that is none of this program's.
var ErrProtocol error = wireKindOf("the answer is none of this program's", nil)

// wireErrors has the kind of each code of the server.
var wireErrors = map[string]error{
	"require":                ErrRequire,
	"exists":                 ErrExists,
	"taken":                  ErrTaken,
	"conflict":               ErrConflict,
	"waiting":                ErrConflict,
	"in-progress":            ErrConflict,
	"store":                  ErrStore,
	"parked":                 ErrStore,
	"incomplete":             ErrIncomplete,
	"unknown":                ErrUnknownOutcome,
	"result-gone":            ErrResultGone,
	"deadline":               ErrInvalidCall,
	"constraint-conflict":    ErrConstraint,
	"constraint-violated":    ErrConstraint,
	"bad-request":            ErrInvalidCall,
	"invalid-host":           ErrInvalidCall,
	"head-too-large":         ErrInvalidCall,
	"overloaded":             ErrUnavailable,
	"shutting-down":          ErrUnavailable,
	"timeout":                ErrUnavailable,
	"invalid-argument":       ErrInvalidCall,
	"misuse":                 ErrInvalidCall,
	"unsupported":            ErrInvalidCall,
	"limit":                  ErrInvalidCall,
	"not-found":              ErrInvalidCall,
	"method-not-allowed":     ErrInvalidCall,
	"too-large":              ErrInvalidCall,
	"unsupported-media-type": ErrInvalidCall,
	"idempotency-mismatch":   ErrInvalidCall,
	"invalid-session":        ErrInvalidSession,
	"unauthenticated":        ErrAccess,
	"forbidden":              ErrAccess,
}

// wireFailure returns an error of a kind; the kind is nil if it is not known.
func wireFailure(kind error, about Error) *Error {
	found := &about
	errors.As(kind, &found.kind)
	return found
}
