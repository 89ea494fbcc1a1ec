package config

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// Shown is the value as it may be printed: of a URL all but the password, of
// any other secret only that it is set.
func (s Setting) Shown() string {
	if !s.Secret || s.Value == "" {
		return s.Value
	}
	if s.Name == "keys" {
		return fmt.Sprintf("(%d keys)", strings.Count(s.Value, ",")+1)
	}
	u, err := url.Parse(s.Value)
	if s.Name == "hook-url" && err == nil && u.Host != "" { // receivers put tokens into paths and queries
		return u.Scheme + "://" + u.Host + "/…"
	}
	if err == nil && u.Host != "" && !u.Query().Has("password") {
		return u.Redacted()
	}
	return "(set)"
}

// Markdown writes docs/configuration.md.
func Markdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Written by "engined config --markdown". Do not edit. -->

Every setting is a flag, a variable in the environment and a key in ` + "`engined.yaml`" + `. The flag wins over the
environment, the environment over the file, the file over the default. The file is the one named by ` + "`--config`" + `
or ` + "`ENGINED_CONFIG`" + `, else ` + "`engined.yaml`" + ` in the working directory. It is a flat mapping:

` + "```yaml" + `
listen: 0.0.0.0:7420
database-url: postgres://engined@db/engined
nats-url: nats://nats:4222
keys: [a-long-random-token=acme]
` + "```" + `

An unknown key in the file is an error. ` + "`engined config`" + ` lists what counts here and who said so.
`)
	var c Config
	for _, t := range titles {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| Flag and key | Environment | Type | Default | Meaning |\n|---|---|---|---|---|\n", t.title, t.text)
		for _, o := range Options() {
			if first(o.Scope) != t.scope {
				continue
			}
			env := "`" + o.Env() + "`"
			if o.Alias != "" {
				env += ", else `" + o.Alias + "`"
			}
			def := cmp.Or(o.Default, "–")
			kind := strings.ReplaceAll(o.bind(&c).Type(), "|", ", ")
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", o.Name, env, kind, def, o.Usage)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// first is the scope under which an option of several is documented.
func first(s Scope) Scope {
	if s&Working != 0 && s&Node != 0 {
		return Working
	}
	for _, t := range titles {
		if s&t.scope != 0 {
			return t.scope
		}
	}
	return General
}
