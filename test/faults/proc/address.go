package proc

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// lent are the ports that this run has given out.
var lent sync.Map

// Address is a loopback address that stays free while its server is down. The
// kernel gives its own choice of ports, from 32768 up, to any connection that
// is made meanwhile.
func Address(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := 10_000 + rand.IntN(22_000)
		if _, taken := lent.LoadOrStore(port, true); taken {
			continue
		}
		a := fmt.Sprintf("127.0.0.1:%d", port)
		if l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", a); err == nil {
			l.Close()
			return a
		}
	}
	t.Fatal("no port is free")
	return ""
}
