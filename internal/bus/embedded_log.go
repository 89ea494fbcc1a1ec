package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// serverLog hands the server's lines to slog. Its Fatalf does not exit the
// process, as the server's own logger would: StartEmbedded returns the cause.
type serverLog struct {
	log *slog.Logger

	mu    sync.Mutex
	fatal error
}

// Noticef demotes the server's start-up chatter.
func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Warnf(format string, v ...any)   { l.log.Warn(fmt.Sprintf(format, v...)) }
func (l *serverLog) Errorf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l *serverLog) Debugf(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Tracef(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }

func (l *serverLog) Fatalf(format string, v ...any) {
	err := fmt.Errorf(format, v...)
	l.log.Error("fatal: " + err.Error())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatal == nil {
		l.fatal = err
	}
}

func (l *serverLog) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fatal == nil {
		return errors.New("not ready in time")
	}
	return l.fatal
}
