package api_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// TestStandby: if a handler is stuck in a write, its request is answered at its deadline
// nevertheless. What the handler responds later is lost, and the request is logged once.
func TestStandby(t *testing.T) {
	if !fastPath {
		t.Skip("net/http can't answer a request before its handler returns")
	}
	t.Parallel()
	for name, test := range map[string]struct {
		giveUp error // what the database says at the deadline; nil: the write just ended
		status int
		code   animalstore.Code
	}{
		"a commit that hangs":        {fmt.Errorf("commit: %w", db.ErrOutcomeUnknown), 503, animalstore.Unavailable},
		"a write that never began":   {context.DeadlineExceeded, 503, animalstore.Overloaded},
		"a write that ends just now": {nil, 422, animalstore.IdempotencyKeyReused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(with *setup) { with.accessLog = true })
			release := make(chan struct{})
			s.db.arm("CreatePet", func(ctx context.Context) error {
				standby := db.StandbyOf(ctx)
				for range 2 { // the second one is late from the start
					asked := make(chan struct{})
					standby.Begin(func() error { close(asked); return test.giveUp })
					<-asked
					<-release
					standby.End()
				}
				return animalstore.Errorf(animalstore.IdempotencyKeyReused, "the handler's own response")
			})
			if test.giveUp == nil {
				close(release)
			}
			began := time.Now()
			a := s.raw(t, inOnePacket(s.owner, `{"name":"late","categoryId":1}`))
			a.want(t, test.status, test.code)
			if took := time.Since(began); took < 4*time.Second {
				t.Errorf("answered after %v, want 5 s", took)
			}
			if answered := test.giveUp != nil; answered {
				if a.header.Get("Connection") != "close" {
					t.Error("the connection stays open, although its goroutine is busy")
				}
				close(release)
			}
			eventually(t, "the request is logged", func() bool { return len(s.log.lines("msg=request ")) > 0 })
			if got := s.log.lines("msg=request "); len(got) != 1 || len(s.log.lines(fmt.Sprint(" status=", test.status, " "))) != 1 {
				t.Errorf("got %q in the log, want one request with status %d", got, test.status)
			}
			if got := s.log.lines("request refused"); len(got) > 1 {
				t.Errorf("got %q in the log, want at most one refusal", got)
			}
			s.db.arm("CreatePet", nil)
			s.raw(t, inOnePacket(s.owner, `{"name":"next","categoryId":1}`)).want(t, 201, "")
		})
	}
}

// inOnePacket is a create that package http1 serves. The client of other tests sends
// header and body separately.
func inOnePacket(key, body string) string {
	return fmt.Sprintf("POST /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", key, len(body), body)
}
