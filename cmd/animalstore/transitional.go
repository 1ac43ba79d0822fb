package main

import (
	"io"
	"time"

	"animalstore/internal/terminal"
)

// These serve the db commands until they call internal/terminal themselves.

const progressEvery = 5 * time.Second

func grouped(n int64) string                   { return terminal.Grouped(n) }
func countOf(n int64, one, many string) string { return terminal.Count(n, one, many) }

type progress struct{ *terminal.Progress }

func newProgress(w io.Writer, total int64, what string) *progress {
	return &progress{terminal.NewProgress(w, total, what)}
}
func (p *progress) add(n int) { p.Add(n) }
func (p *progress) end()      { p.Clear() }
