package mingleclient

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// wireSessionCallsMax is the number of calls of one session that run side by side: so many tokens stand in
// a header.
const wireSessionCallsMax = 8

// Session is one client of the server, and what it has seen: its later calls see that too. The zero value is a
// new session.
//
// Calls of one session may run side by side, up to eight of them; more wait for their turn. All calls
// that begin after an answer build upon what that call has seen. A call whose answer was lost leaves nothing in
// the session, unless it is made again with its idempotency key.
type Session struct {
	mutex   sync.Mutex
	tokens  []string
	running int
	// turn is closed when a call ends; nil if no call waits.
	turn chan struct{}
}

// NewSession returns a session that goes on from the token of another one; from the start if it is empty.
func NewSession(token string) *Session {
	session := new(Session)
	for _, part := range strings.Split(token, ",") {
		if part = strings.TrimSpace(part); part != "" {
			session.tokens = append(session.tokens, part)
		}
	}
	return session
}

// Token returns the session as text, which can be kept; empty if it has seen nothing.
func (s *Session) Token() string {
	return strings.Join(s.sent(), ", ")
}

// sent returns the tokens that a call begins with.
func (s *Session) sent() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.tokens)
}

// learn puts an answer's token in the place of those that the call began with. So there are never more
// tokens than calls that run side by side: a call that began after a token came replaces it.
func (s *Session) learn(sent []string, learned string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.tokens = slices.DeleteFunc(s.tokens, func(token string) bool {
		return token == learned || slices.Contains(sent, token)
	})
	s.tokens = append(s.tokens, learned)
}

// enter waits until fewer calls run than may.
func (s *Session) enter(ctx context.Context) error {
	for {
		turn := s.tryEnter()
		if turn == nil {
			return nil
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryEnter returns nil if the call may run, otherwise a channel that is closed when another call has ended.
func (s *Session) tryEnter() <-chan struct{} {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.running < wireSessionCallsMax {
		s.running++
		return nil
	}
	if s.turn == nil {
		s.turn = make(chan struct{})
	}
	return s.turn
}

func (s *Session) leave() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.running--
	// All calls that wait look again, so that a turn is not lost with a call that gave up.
	if s.turn != nil {
		close(s.turn)
		s.turn = nil
	}
}
