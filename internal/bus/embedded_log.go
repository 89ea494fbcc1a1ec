package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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
func (l *serverLog) Errorf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l *serverLog) Debugf(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Tracef(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }

// Warnf demotes one warning: that a stream's index is behind its data is how
// every start after a kill begins, and mended by the time it is said.
func (l *serverLog) Warnf(format string, v ...any) {
	text, level := fmt.Sprintf(format, v...), slog.LevelWarn
	if strings.Contains(text, "Stream state outdated") {
		level = slog.LevelInfo
	}
	l.log.Log(context.Background(), level, text)
}

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
