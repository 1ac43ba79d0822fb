package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"animalstore/internal/db/sqlite"
)

// reader is a process that reads one store. Two stores in one process would
// share SQLite's cache, and the larger would push the smaller out of it.
type reader struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startReader(ctx context.Context, file string, animals int) (*reader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &reader{cmd: exec.CommandContext(ctx, self, "reader", file, strconv.Itoa(animals))}
	r.cmd.Stderr = os.Stderr
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewReader(out)
	return r, r.cmd.Start()
}

// burst has the reader read for a while, and tells what processor time one page
// took. Which of filterReads it reads goes by number.
func (r *reader) burst(read int, d time.Duration) (micros float64, err error) {
	if _, err := fmt.Fprintln(r.in, read, d.Nanoseconds()); err != nil {
		return 0, err
	}
	if _, err := fmt.Fscanln(r.out, &micros); err != nil {
		return 0, fmt.Errorf("the reader gave up: %w", err)
	}
	return micros, nil
}

func (r *reader) stop() {
	r.in.Close()
	r.cmd.Wait()
}

// serveReader is the other end of a reader. It lives until its input ends.
func serveReader(file, animals string) error {
	n, err := strconv.ParseInt(animals, 10, 64)
	if err != nil {
		return err
	}
	ctx := context.Background()
	store, err := sqlite.Open(ctx, file, sqlite.Options{Serve: true, MustExist: true})
	if err != nil {
		return err
	}
	defer store.Close()
	random := rand.New(rand.NewPCG(7, uint64(n)))
	for {
		var read int
		var nanos int64
		if _, err := fmt.Scanln(&read, &nanos); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		calls, before := 0, cpuTime()
		for end := time.Now().Add(time.Duration(nanos)); time.Now().Before(end); calls++ {
			if err := filterReads[read].page(ctx, store, random, n); err != nil {
				return err
			}
		}
		fmt.Println(float64((cpuTime() - before).Nanoseconds()) / 1000 / float64(calls))
	}
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
