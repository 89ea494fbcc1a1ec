package chaos

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/test/faults/proc"
)

// Settings of a run.
var (
	cycles  = flag.Int("cycles", 8, "how many cycles")
	seed    = flag.Uint64("seed", 7420, "what the plan and the load are drawn from")
	table   = flag.Bool("table", false, "write docs/chaos.md when nothing was found")
	only    = flag.String("only", "", "inject faults of this name alone")
	clients = flag.Int("clients", 5, "how many clients work at one time")
)

// envNATS makes this program a NATS server: its directory, its address and how
// much it may store, separated by bars. As a process of its own it can be
// frozen and killed.
const envNATS = "ENGINED_CHAOS_NATS"

func TestMain(m *testing.M) {
	if text := os.Getenv(envNATS); text != "" {
		if err := serveNATS(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	code := m.Run()
	proc.RemoveBinary()
	os.Exit(code)
}

func serveNATS(text string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	part := strings.Split(text, "|")
	most, err := strconv.ParseInt(part[2], 10, 64)
	if err != nil {
		return err
	}
	ctx := context.Background()
	e, err := bus.StartEmbedded(ctx, bus.EmbeddedOptions{StoreDir: part[0], Listen: part[1], MaxStore: most})
	if err != nil {
		return err
	}
	fmt.Println("nats is ready")
	<-stop
	return e.Stop(ctx)
}
