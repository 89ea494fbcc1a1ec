package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
)

type options struct {
	transcripts, locomo, database, only, profile string
	messages, runs                               int
	stages                                       bool
}

func main() {
	var o options
	flag.StringVar(&o.transcripts, "transcripts", "", "a directory of transcripts, or of directories of them")
	flag.StringVar(&o.locomo, "locomo", "", "a LoCoMo file, stored beside them; leave out for none")
	flag.IntVar(&o.messages, "messages", 40_000, "size of the tenant")
	flag.IntVar(&o.runs, "runs", 30, "how often each query runs")
	flag.StringVar(&o.database, "database", "", "an empty database, or one that an earlier run filled; without it a server is started and removed")
	flag.BoolVar(&o.stages, "stages", false, "tell what the reads of each query took")
	flag.StringVar(&o.only, "only", "", "measure the query of this name alone")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a profile of this process, without Postgres, to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, &o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) (err error) {
	b, err := open(ctx, o.database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(context.WithoutCancel(ctx))) }()
	if err := b.fill(ctx, o); err != nil {
		return err
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	rows, err := b.measure(ctx, o)
	if err != nil {
		return err
	}
	b.print(os.Stdout, rows, o.stages)
	return nil
}
