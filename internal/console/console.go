// Package console serves the web console: static files that a browser runs
// against the public API, with the key of whoever looks. It has no data of its
// own and needs nothing of the node but these bytes.
package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var embedded embed.FS

// policy lets the pages load what this node serves and talk to it alone. The
// log's contents come from strangers: were one of them ever taken for markup, it
// still could run nothing and reach nobody.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// file is one of them, ready to be sent.
type file struct {
	body      []byte
	mediaType string
	tag       string
}

// Handler serves the console below prefix, which ends with a slash.
func Handler(prefix string) (http.Handler, error) {
	files, err := load()
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "the console is only read", http.StatusMethodNotAllowed)
			return
		}
		name, ok := strings.CutPrefix(r.URL.Path, prefix)
		if name == "" {
			name = "index.html"
		}
		f, found := files[name]
		if !ok || !found {
			http.Error(w, "no such file of the console; it begins at "+prefix, http.StatusNotFound)
			return
		}
		// Modules name each other by plain paths, so a file may be kept but is
		// asked for again: after a rollout no page is made of two versions for
		// longer than one load.
		h.Set("Cache-Control", "no-cache")
		h.Set("Content-Type", f.mediaType)
		h.Set("ETag", f.tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(f.body))
	}), nil
}

// mediaTypes are all that there is. Asking the system would make what browsers
// get depend on the machine.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".md":   "text/plain; charset=utf-8",
	"":      "text/plain; charset=utf-8",
}

func load() (map[string]file, error) {
	files := make(map[string]file)
	err := fs.WalkDir(embedded, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		mediaType, known := mediaTypes[path.Ext(name)]
		if !known {
			return fmt.Errorf("console: no media type for %s", name)
		}
		body, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		files[strings.TrimPrefix(name, "static/")] = file{body, mediaType, `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	return files, nil
}
