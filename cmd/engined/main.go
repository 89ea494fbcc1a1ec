// Command engined is a context engine for AI agents as a service: a node, its
// workers and the tools to look at them, in one program.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// errSignal is the cause of an end that somebody asked for.
var errSignal = errors.New("asked to stop")

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel(errSignal)
		<-signals
		os.Exit(exitSignal) // the second time it is meant
	}()
	c := &cli{out: os.Stdout, err: os.Stderr, lookupEnv: os.LookupEnv}
	os.Exit(c.run(ctx, os.Args[1:]))
}
