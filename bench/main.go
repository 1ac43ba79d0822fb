// Command bench measures the built server and compares it with bars it must clear.
//
// Absolute figures say more about the machine than about the server, so nearly every
// bar is a ratio of two servers that took turns on it. README.md explains how to read
// the tables.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: bench peers|quick|growth|ceiling|profile [flags]

  peers    compares the release build with a bare net/http server, PocketBase,
           Fastify and others, and measures how it scales, in 20 minutes.
           Writes bench/results and docs/performance.md
  quick    compares the release build with a bare net/http server and, with -base,
           with the build of another commit, on SQLite and on PostgreSQL with Redis,
           in a few minutes
  growth   compares reads at 5 million pets with reads at 100 thousand, on both databases
  ceiling  measures creates, events and deliveries of several instances on one
           PostgreSQL, and their CPU time, in five minutes
  profile  writes the profile that releases are compiled with, in a minute

Flags, after the command:
`

// options are the settings of a run.
type options struct {
	pets      int
	rounds    int
	burst     time.Duration
	warmup    time.Duration // a first burst that isn't counted, unless it is 0
	dir       string
	strict    bool
	workloads []string // for quick and peers, including the other parts of a run

	engines []string // for quick and growth

	// of quick
	base     string // a revision to compare with
	onlyBase bool

	// of peers
	servers []string
	results string

	instances []int // of ceiling: how many share a PostgreSQL

	few, many int // pets in the stores that growth compares
	// divisor is 1, or more in a test: the parts without rounds do only so much of their work.
	divisor int
}

func (o *options) amount(n int) int                     { return max(1, n/o.divisor) }
func (o *options) length(d time.Duration) time.Duration { return d / time.Duration(o.divisor) }

var commands = map[string]struct {
	run      func(*report)
	defaults options
}{
	"peers":   {peers, options{pets: 1_000_000, rounds: 7, burst: time.Second, warmup: time.Second}}, // Node compiles while it runs
	"quick":   {quick, options{pets: 200_000, rounds: 11, burst: 300 * time.Millisecond, warmup: 200 * time.Millisecond}},
	"growth":  {growth, options{pets: manyPets, rounds: 9, burst: time.Second, warmup: 200 * time.Millisecond}},
	"ceiling": {ceiling, options{pets: 200_000, rounds: 5, burst: 2 * time.Second, warmup: 500 * time.Millisecond}},
	"profile": {profile, options{pets: 200_000, rounds: 1, burst: profileLength}},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 3 && args[0] == "bare" {
		return attempt(func() { serveBare(args[1:]) })
	}
	name, o, err := parseOptions(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &bench{options: o, ctx: ctx, command: name}
	defer b.close()
	err = b.report(os.Stdout, func(r *report) {
		b.open()
		commands[name].run(r)
	})
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

// report measures, and prints the results: if a later part fails, those of the parts before.
func (b *bench) report(out io.Writer, measure func(*report)) error {
	r := &report{bench: b, when: time.Now()}
	failed := attempt(func() { measure(r) })
	missed := false
	unprinted := attempt(func() { missed = r.print(out) })
	switch {
	case failed != nil || unprinted != nil:
		return errors.Join(failed, unprinted)
	case b.strict && missed:
		return errors.New("a bar was missed")
	}
	return nil
}

func parseOptions(args []string) (name string, o options, err error) {
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	command, known := commands[name]
	o = command.defaults
	o.few, o.many, o.divisor = fewPets, manyPets, 1
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	flags.Usage = func() {
		fmt.Fprint(os.Stderr, usage)
		flags.PrintDefaults()
	}
	flags.IntVar(&o.rounds, "rounds", o.rounds, "number of turns for each server")
	flags.DurationVar(&o.burst, "burst", o.burst, "length of a turn")
	flags.IntVar(&o.pets, "pets", o.pets, "pets in the store; in growth, in the larger one")
	flags.StringVar(&o.dir, "dir", os.TempDir(), "where to put databases: use a real disk, otherwise creates don't wait for it")
	flags.BoolVar(&o.strict, "strict", false, "fail if a bar is missed")
	switch name {
	case "quick":
		o.workloads = quickWork
		flags.StringVar(&o.base, "base", "", "also compare with a build of this `revision`")
		flags.BoolVar(&o.onlyBase, "only-base", false, "compare with -base alone, not with a bare server")
	case "ceiling":
		o.workloads, o.instances = ceilingWork, []int{1, 2, 4}
		flags.Func("instances", "numbers of instances that share the PostgreSQL (default 1,2,4)", numbers(&o.instances))
	case "growth":
		o.workloads = namesOf(growthWorkloads)
	case "peers":
		o.servers, o.workloads = serverNames(), workloadNames()
		flags.Func("servers", "servers to compare ours with, of "+strings.Join(o.servers, ",")+" (default all)", pick(&o.servers))
		flags.StringVar(&o.results, "results", "", "where to write results (default bench/results, if everything is measured)")
	}
	if name == "quick" || name == "growth" {
		o.engines = []string{onSQLite, onPostgres}
		flags.Func("engines", "databases to run on, of "+strings.Join(o.engines, ",")+" (default all)", pick(&o.engines))
	}
	if o.workloads != nil {
		flags.Func("workloads", "what to measure, of "+strings.Join(o.workloads, ",")+" (default all)", pick(&o.workloads))
	}
	if !known {
		flags.Usage()
		return "", o, errors.New("name a command")
	}
	flags.Parse(args)
	if name == "growth" {
		o.many = o.pets
	}
	if o.rounds < 1 || o.burst < 200*time.Millisecond || o.pets < 1000 {
		return "", o, errors.New("needs at least 1 round, bursts of 200ms and 1000 pets")
	}
	return name, o, nil
}

// pick returns a flag setter that narrows a list to some of its names.
func pick(names *[]string) func(string) error {
	all := *names
	return func(value string) error {
		*names = strings.Split(value, ",")
		for _, name := range *names {
			if !slices.Contains(all, name) {
				return fmt.Errorf("there is no %q", name)
			}
		}
		return nil
	}
}

// numbers returns a flag setter for a list of positive numbers.
func numbers(list *[]int) func(string) error {
	return func(value string) error {
		*list = nil
		for text := range strings.SplitSeq(value, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return fmt.Errorf("%q isn't a positive number", text)
			}
			*list = append(*list, n)
		}
		return nil
	}
}

var began = time.Now()

// progress prints a line for the user.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4.0fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
}
