package diagnose

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"animalstore/client"
)

// advice is what a command adds to the reason of a failed call: what to do next, with
// the flags that commands have.
var advice = map[Problem]string{
	LimitReached:         ". Try again then, or use --wait to let the command wait",
	LimitEndUnknown:      ". Try again later, or with --wait",
	Banned:               `. Wait until then (--wait does), or have the ban lifted with "animalstore keys unban"`,
	PermissionMissing:    `. Create a key that has it with "animalstore keys create --permissions"`,
	NoServer:             `. Start one with "animalstore serve", or say where it is with --url or ANIMALSTORE_URL`,
	HostUnknown:          ". Is --url right?",
	NeedsHTTPS:           ": write https:// in --url",
	NeedsHTTP:            ": write http:// in --url",
	CertificateUntrusted: ". If it is your own, name it with --cacert",
	NoResponse:           ". Is it running, and is --url right?",
	ConnectionFailed:     ". Is the server running, and is --url right?",
	NotOurServer:         ". Is --url right?",
}

// Advise is [Call.Explain] for the person at the command line: what happened, why, and
// what to do next.
func (c Call) Advise(ctx context.Context, err error) (Problem, string) {
	problem, text := c.Explain(ctx, err)
	if problem == Unrelated {
		return problem, ""
	}
	text += advice[problem]
	var again Repeatable
	switch {
	case !errors.Is(err, client.ErrOutcomeUnknown):
	case errors.As(err, &again):
		text = Sentence(text) + fmt.Sprintf(" It is unknown whether it was done: repeat the command with --idempotency-key %s, and it is done only once", again.Key)
	default:
		text = Sentence(text) + " It is unknown whether the change was made: check before you repeat it"
	}
	return problem, text
}

// Repeatable is the error of a request that can be repeated with its idempotency key.
type Repeatable struct {
	Err error
	Key string
}

func (r Repeatable) Error() string { return r.Err.Error() }
func (r Repeatable) Unwrap() error { return r.Err }

// Sentence ends a text so that another can follow.
func Sentence(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
