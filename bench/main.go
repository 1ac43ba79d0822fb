// Command bench measures the built server against marks it has to keep.
//
// Absolute figures say more about the machine than about the server, so every
// mark is a ratio of two servers that took turns on it. README.md says how to
// read the tables.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: bench peers|quick|growth|filters [flags]

  peers    the release build beside a bare net/http server, PocketBase, Fastify
           and others, under every kind of load, and how it grows: a quarter of
           an hour. Writes bench/results and docs/performance.md
  quick    the release build beside a bare net/http server, and group commit
           beside a transaction a request: under two minutes
  growth   what a read costs at 5 million animals beside 100 thousand, and how
           long a start takes
  filters  what a page under every combination of filters costs at 5 million
           animals beside 100 thousand

Flags, after the command:
`

// options are what a run can be told.
type options struct {
	rounds  int
	burst   time.Duration
	warm    time.Duration // a first burst that is not counted
	animals int
	dir     string
	strict  bool

	// of peers
	contestants, workloads []string
	results                string
}

// errMissed is a mark not kept, where that counts as a failure.
var errMissed = errors.New("a mark was missed")

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	commands := map[string]struct {
		run     func(context.Context, options, string) ([]*table, error)
		animals int
		rounds  int
		burst   time.Duration
		warm    time.Duration
	}{
		"peers":   {peers, 1_000_000, 7, time.Second, time.Second}, // Node compiles while it runs
		"quick":   {quick, 200_000, 9, 500 * time.Millisecond, 200 * time.Millisecond},
		"growth":  {growth, manyAnimals, 9, time.Second, 200 * time.Millisecond},
		"filters": {filters, manyAnimals, 9, 200 * time.Millisecond, 0},
	}
	name, rest := "", args
	if len(args) > 0 {
		name, rest = args[0], args[1:]
	}
	if name == "bare" && len(rest) == 2 { // quick starts it so, and a signal ends it
		return serveBare(rest[0], rest[1])
	}
	if name == "reader" && len(rest) == 2 { // filters starts it so, and the end of its input ends it
		return serveReader(rest[0], rest[1])
	}
	var o options
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	flags.Usage = func() {
		fmt.Fprint(os.Stderr, usage)
		flags.PrintDefaults()
	}
	command, known := commands[name]
	flags.IntVar(&o.rounds, "rounds", command.rounds, "how often each server has its turn")
	flags.DurationVar(&o.burst, "burst", command.burst, "how long a turn takes")
	flags.IntVar(&o.animals, "animals", command.animals, "animals in the store; in growth, in the larger one")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "where to put databases: a real disk, or creates wait for nothing")
	flags.BoolVar(&o.strict, "strict", false, "fail if a mark is missed")
	if name == "peers" {
		chooseFrom(flags, &o.contestants, "contestants", contestantNames(), "who races with ours")
		chooseFrom(flags, &o.workloads, "workloads", partNames(), "what to measure")
		flags.StringVar(&o.results, "results", "", "where to write results (default bench/results, if everything is measured)")
	}
	if !known {
		flags.Usage()
		return errors.New("name a command")
	}
	flags.Parse(rest)
	if o.rounds < 1 || o.burst < 200*time.Millisecond || o.animals < 1000 {
		return errors.New("at least 1 round, bursts of 200ms and 1000 animals are needed")
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	work, err := os.MkdirTemp(o.dir, "animalstore-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	o.warm = command.warm
	tables, err := command.run(ctx, o, work)
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		return err
	}
	var notes []string
	missed := false
	for _, t := range tables {
		fmt.Println()
		if err := t.print(os.Stdout); err != nil {
			return err
		}
		notes, missed = append(notes, t.notes...), missed || t.missed
	}
	fmt.Printf("\n%s. Medians of %d rounds, lowest and highest round in brackets. Took %v.\n",
		strings.Join(notes, ". "), o.rounds, time.Since(began).Round(time.Second))
	if o.strict && missed {
		return errMissed
	}
	return nil
}

// chooseFrom makes a flag that takes names, between commas, of what there is.
// Without it all are chosen.
func chooseFrom(flags *flag.FlagSet, chosen *[]string, name string, all []string, usage string) {
	*chosen = all
	flags.Func(name, usage+", of "+strings.Join(all, ",")+" (default all)", func(value string) error {
		*chosen = strings.Split(value, ",")
		for _, one := range *chosen {
			if !slices.Contains(all, one) {
				return fmt.Errorf("there is no %q", one)
			}
		}
		return nil
	})
}

var began = time.Now()

// say tells the person who waits what is going on.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4.0fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
}
