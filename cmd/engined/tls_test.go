package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/engined/engined/internal/testdb"
)

// writeCertificate makes a certificate of 127.0.0.1 that signs itself.
func writeCertificate(t *testing.T, dir string, serial int64) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "engined"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Serials tell the times apart where the clock of the disk does not.
	when := time.Now().Add(time.Duration(serial) * time.Second)
	for _, name := range []string{certFile, keyFile} {
		if err := os.Chtimes(name, when, when); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func TestANodeSpeaksTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := writeCertificate(t, dir, 1)
	n := serve(t, "serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--database-url", testdb.New(t), "--nats-url", "nats://127.0.0.1:1")
	if !strings.HasPrefix(n.url, "https://") {
		t.Fatalf("url %s", n.url)
	}
	engined(t, "sessions", "--url", n.url, "--ca", cert).ok(t)
	if got := engined(t, "sessions", "--url", n.url); got.code != exitFailure || !strings.Contains(got.err, "certificate") {
		t.Errorf("a stranger's certificate: %+v", got)
	}
	if res, err := http.Get("http://" + strings.TrimPrefix(n.url, "https://") + "/healthz"); err == nil {
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			t.Error("it answers without TLS")
		}
	}
	if serial, res := handshake(t, n.url); serial != 1 || !strings.Contains(res.Header.Get("Strict-Transport-Security"), "max-age") || res.ProtoMajor != 2 {
		t.Errorf("certificate %d, HTTP/%d, %v", serial, res.ProtoMajor, res.Header)
	}

	if err := os.WriteFile(cert, []byte("half written"), 0o600); err != nil {
		t.Fatal(err)
	}
	if serial, _ := handshake(t, n.url); serial != 1 {
		t.Errorf("with a broken file: certificate %d", serial)
	}
	writeCertificate(t, dir, 2)
	if serial, _ := handshake(t, n.url); serial != 2 {
		t.Errorf("after the change: certificate %d", serial)
	}
}

// handshake makes a new connection and tells the certificate's serial number.
func handshake(t *testing.T, url string) (serial int64, res *http.Response) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get(url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.TLS.PeerCertificates[0].SerialNumber.Int64(), res
}

func TestTLSNeedsBothFiles(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--tls-cert", "x"}, {"--tls-key", "x"}} {
		if got := engined(t, append([]string{"serve", "--database-url", "postgres://127.0.0.1:1/x"}, args...)...); got.code != exitUsage || !strings.Contains(got.err, "one needs the other") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
