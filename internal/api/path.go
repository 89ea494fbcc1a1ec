package api

import (
	"net/http"
	"net/url"
	"strings"
)

// ServeHTTP hands the request to the mux under a path that the mux leaves as it
// is. In /v1/sessions/../events the dots are a session key: "cleaning" the path
// would redirect, and redirecting a POST would lose it.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if !plainPath(path) {
		mended, slash, child := mendPath(path)
		u := *r.URL
		if slash || child {
			u.Path, u.RawPath = mended, ""
			if plain, err := url.PathUnescape(mended); err == nil && plain != mended {
				u.Path, u.RawPath = plain, mended
			}
		} else {
			u.RawPath = mended
		}
		if mended == "" || u.EscapedPath() != mended { // no path of ours can look like this
			a.lost.ServeHTTP(w, r)
			return
		}
		r2 := *r
		r2.URL = &u
		if slash {
			r2.SetPathValue(slashKey, "/")
		}
		if child {
			r2.SetPathValue(slashChild, "/")
		}
		r = &r2
	}
	a.mux.ServeHTTP(w, r)
}

// plainPath reports that there is nothing to mend, as in nearly every request.
func plainPath(path string) bool {
	return strings.HasPrefix(path, "/") && !strings.Contains(path, "/.") && !strings.Contains(path, "//") &&
		!strings.Contains(path, "/%2F") && !strings.Contains(path, "/%2f")
}

// mendPath encodes the dots of segments that are nothing but dots. An empty
// segment is no key and leads nowhere: then the path is "". slash reports that
// the session key is a lone slash, child that a sub-agent's is.
func mendPath(path string) (mended string, slash, child bool) {
	if !strings.HasPrefix(path, "/") || strings.Contains(path, "//") {
		return "", false, false
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		switch s {
		case ".", "..":
			segments[i] = strings.ReplaceAll(s, ".", "%2E")
		case "%2F", "%2f":
			switch {
			case i == keySegment:
				segments[i], slash = "_", true
			case i == childSegment && segments[i-1] == "subagents":
				segments[i], child = "_", true
			}
		}
	}
	return strings.Join(segments, "/"), slash, child
}

const (
	// keySegment is where a path has its session key: /v1/sessions/{key}.
	keySegment = 3
	// childSegment is where it has a sub-agent's: …/subagents/{child}.
	childSegment = 5
	// slashKey is a path value beside the pattern's own. The mux takes a segment
	// that decodes to "/" for the path's end, so that key goes around it.
	slashKey   = "slash"
	slashChild = "slashChild"
)

// pathChild is the sub-agent's session key that the path names.
func pathChild(r *http.Request) string {
	if key := r.PathValue(slashChild); key != "" {
		return key
	}
	return r.PathValue("child")
}

// pathKey is the session key that the path names.
func pathKey(r *http.Request) string {
	if key := r.PathValue(slashKey); key != "" {
		return key
	}
	return r.PathValue("key")
}
