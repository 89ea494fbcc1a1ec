package bus

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	const server = "github.com/nats-io/nats-server/v2/server"
	goleak.VerifyTestMain(
		m,
		// A stream that is being created while its server shuts down keeps its
		// file store open.
		goleak.IgnoreTopFunction(server+".(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreTopFunction(server+"/ats.Register.func1"),
	)
}
