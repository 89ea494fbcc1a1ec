package bus_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/engined/engined/internal/bus"
	"github.com/engined/engined/internal/bus/bustest"
)

func BenchmarkPublishJob(b *testing.B) {
	conn := bustest.Connect(b, bustest.Start(b))
	j := bus.Job{Tenant: "default", SID: uuid.NewString(), Epoch: 1}
	for b.Loop() {
		j.Attempt++
		if err := conn.PublishJob(context.Background(), j); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkConsumeJobs(b *testing.B) {
	conn := bustest.Connect(b, bustest.Start(b))
	j := bus.Job{Tenant: "default", SID: uuid.NewString(), Epoch: 1}
	done := make(chan struct{}, b.N)
	for range b.N {
		j.Attempt++
		if err := conn.PublishJob(context.Background(), j); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	if _, err := conn.ConsumeJobs(context.Background(), bus.ConsumeOptions{Durable: bus.CompactorDurable}, func(context.Context, bus.Job, bus.Delivery) error {
		done <- struct{}{}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	for range b.N {
		<-done
	}
}
