package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate makes one for 127.0.0.1 that vouches for itself, and writes it and its key.
func certificate(t *testing.T, dir string) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots = x509.NewCertPool()
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(made)
	return cert, key, roots
}

// Given a certificate, the server answers by HTTPS alone, and says so where commands look for it.
func TestServeWithTLS(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("FOLDHOST_TOKEN_FILE", "")
	cert, key, roots := certificate(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	cmd := root()
	cmd.SetArgs([]string{"serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key})
	cmd.SetOut(in)
	ended := make(chan error, 1)
	go func() {
		err := cmd.ExecuteContext(ctx)
		in.CloseWithError(io.EOF)
		ended <- err
	}()
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	var url string
	if _, scanned := fmt.Sscanf(first, "serving %s", &url); err != nil || scanned != nil || !strings.HasPrefix(url, "https://127.0.0.1:") {
		cancel()
		t.Fatalf("it says %q, %v, %v", first, err, <-ended)
	}
	go io.Copy(io.Discard, lines)
	url = strings.TrimSuffix(url, ",")
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Get(url + "/healthz")
	if err != nil {
		t.Error(err)
	} else {
		res.Body.Close()
		if res.StatusCode != 200 || res.TLS == nil || res.TLS.Version < tls.VersionTLS12 {
			t.Errorf("%d, %+v", res.StatusCode, res.TLS)
		}
	}
	if res, err := http.Get("http://" + strings.TrimPrefix(url, "https://") + "/healthz"); err == nil {
		res.Body.Close()
		if res.StatusCode == 200 {
			t.Error("it answers without TLS")
		}
	}
	if lock, err := os.ReadFile(filepath.Join("foldhost-data", "foldhost.lock")); err != nil || !strings.Contains(string(lock), url+"\n") {
		t.Errorf("the lock file is %q, %v", lock, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
