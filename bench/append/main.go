package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type options struct {
	engined     string
	dir         string
	duration    time.Duration
	rounds      int
	connections []int
	sessions    int
	bytes       int
	hot         bool
	json        bool
	want        float64
	quiet       float64
	retries     int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "append:", err)
		os.Exit(1)
	}
}

func parse() (options, error) {
	o := options{connections: []int{1, 16, 128}}
	flag.StringVar(&o.engined, "engined", "bin/engined", "the program to measure")
	flag.StringVar(&o.dir, "dir", ".tmp", "directory on a real disk for the private Postgres (without DATABASE_URL)")
	flag.DurationVar(&o.duration, "duration", 3*time.Second, "length of one measurement, whole seconds")
	flag.IntVar(&o.rounds, "rounds", 3, "measurements of each side a level, in turns")
	flag.Func("connections", "levels (default 1,16,128)", func(s string) error {
		o.connections = nil
		for f := range strings.SplitSeq(s, ",") {
			n, err := strconv.Atoi(f)
			if err != nil || n < 1 {
				return errors.New("positive numbers, separated by commas")
			}
			o.connections = append(o.connections, n)
		}
		return nil
	})
	flag.IntVar(&o.sessions, "sessions", 500, "sessions the load is spread over")
	flag.IntVar(&o.bytes, "bytes", 1024, "size of a message")
	flag.BoolVar(&o.hot, "hot", true, "also measure one session that gets all the load")
	flag.BoolVar(&o.json, "json", false, "print JSON")
	flag.Float64Var(&o.want, "want", 0, "fail when the last spread level's ratio is lower")
	flag.Float64Var(&o.quiet, "quiet", 1, "measure a round again when other programs used more than this share of the CPUs")
	flag.IntVar(&o.retries, "retries", 20, "how many rounds a level may be measured again")
	flag.Parse()
	o.duration = max(o.duration.Truncate(time.Second), time.Second)
	if flag.NArg() > 0 || o.sessions < 1 || o.sessions > maxSessions || o.rounds < 1 || o.bytes < minMessage {
		return o, fmt.Errorf("sessions 1 to %d, rounds 1 and more, bytes %d and more, no arguments", maxSessions, minMessage)
	}
	return o, nil
}

func run(ctx context.Context) (err error) {
	o, err := parse()
	if err != nil {
		return err
	}
	b, err := start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stop()) }()

	r := report{Machine: b.machine(ctx), Options: o.words()}
	for _, sessions := range o.spreads() {
		for _, n := range o.connections {
			l, err := b.level(ctx, sessions, n)
			if err != nil {
				return err
			}
			r.Levels = append(r.Levels, l)
			if !o.json {
				l.print(os.Stdout, len(r.Levels) == 1)
			}
		}
	}
	if r.Verified, err = b.verify(ctx); err != nil {
		return err
	}
	if o.json {
		err = r.writeJSON(os.Stdout)
	} else {
		err = r.printTail(os.Stdout)
	}
	if got := r.last(o.sessions); err == nil && got < o.want {
		return fmt.Errorf("ratio %.2f, wanted %.2f", got, o.want)
	}
	return err
}

// spreads are the numbers of sessions to measure with.
func (o options) spreads() []int {
	if o.hot && o.sessions > 1 {
		return []int{o.sessions, 1}
	}
	return []int{o.sessions}
}

func (o options) words() string {
	return fmt.Sprintf("%d rounds of %s a side and level, messages of %d bytes", o.rounds, o.duration, o.bytes)
}
