package api

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics have routes as labels, never tenants or sessions.
type metrics struct {
	requests *prometheus.HistogramVec
	inFlight prometheus.Gauge
	streams  prometheus.Gauge
	panics   prometheus.Counter
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "engined_http_request_duration_seconds",
			Help:    "Time from a request's arrival to the end of its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 120},
		}, []string{"route", "method", "status"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "engined_http_requests_in_flight", Help: "Requests being answered, streams included.",
		}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "engined_http_streams", Help: "Open event streams.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "engined_http_panics_total", Help: "Requests that ended in a panic.",
		}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.inFlight, m.streams, m.panics} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return m, nil
}

// observer counts the answers of one operation. The usual one is looked up once.
func (m *metrics) observer(route, method string) func(status int, took time.Duration) {
	of := m.requests.MustCurryWith(prometheus.Labels{"route": route, "method": method})
	ok := sync.OnceValue(func() prometheus.Observer { return of.WithLabelValues("200") })
	return func(status int, took time.Duration) {
		if status == http.StatusOK {
			ok().Observe(took.Seconds())
			return
		}
		of.WithLabelValues(strconv.Itoa(status)).Observe(took.Seconds())
	}
}
