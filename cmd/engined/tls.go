package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is a certificate in two files, read again when they change. While
// what is there can't be used, such as between the writing of one file and the
// other, the one from before stays.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	seen    [2]fileState
}

// fileState tells a file from what it was before.
type fileState struct {
	modified time.Time
	size     int64
}

func loadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	state, err := c.state()
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	if err := c.load(state); err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return c, nil
}

func (c *certificate) state() (s [2]fileState, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return s, err
		}
		s[i] = fileState{info.ModTime(), info.Size()}
	}
	return s, nil
}

func (c *certificate) load(state [2]fileState) error {
	c.seen = state
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.current = &cert
	return nil
}

// get is tls.Config.GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state, err := c.state()
	if err == nil && state != c.seen {
		if err = c.load(state); err == nil {
			c.log.Info("the certificate was read again", "file", c.certFile)
		} else {
			c.log.Warn("the changed certificate can't be used; the one from before stays", "file", c.certFile, "error", err)
		}
	}
	return c.current, nil
}

// tlsConfig is nil without a certificate.
func (a *App) tlsConfig() (*tls.Config, error) {
	if a.cfg.TLSCert == "" {
		return nil, nil
	}
	c, err := loadCertificate(a.cfg.TLSCert, a.cfg.TLSKey, a.log)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}, nil
}
