//go:build !linux

package main

import (
	"context"
	"errors"
	"time"
)

func runSteady(context.Context, workload, *server, string, time.Duration) (turn, time.Duration, error) {
	return turn{}, 0, errors.New("half load can only be measured on Linux")
}
