package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"slices"
	"strings"
)

//go:embed docs.html
var docsTemplate string

// docsPage is the OpenAPI document as a page that needs no script and nothing
// from elsewhere. It is made once.
func docsPage(document []byte) []byte {
	var d docsDocument
	if err := json.Unmarshal(document, &d); err != nil {
		panic(err) // the document was just made here
	}
	page := template.Must(template.New("docs").Funcs(template.FuncMap{
		"name": func(ref string) string { return strings.TrimPrefix(ref, "#/components/schemas/") },
		"code": inlineCode,
	}).Parse(docsTemplate))
	var out bytes.Buffer
	if err := page.Execute(&out, d.view()); err != nil {
		panic(err) // and so was the template
	}
	return out.Bytes()
}

// inlineCode turns `code` into elements; everything else is text.
func inlineCode(s string) template.HTML {
	var out strings.Builder
	for i, part := range strings.Split(s, "`") {
		text := template.HTMLEscapeString(part)
		if i%2 == 1 {
			text = "<code>" + text + "</code>"
		}
		out.WriteString(text)
	}
	return template.HTML(out.String()) //nolint:gosec // every part was escaped
}

// docsDocument is the part of the document that the page shows.
type docsDocument struct {
	Info struct{ Title, Description string }
	Tags []struct{ Name, Description string }
	// Paths has operations by path and method.
	Paths      map[string]map[string]*docsOperation
	Components struct{ Schemas map[string]*docsSchema }
}

type docsOperation struct {
	Method, Path         string
	OperationID          string
	Summary, Description string
	Tags                 []string
	Parameters           []struct{ Name, In, Description string }
	RequestBody          struct{ Content map[string]docsMedia }
	Responses            map[string]struct {
		Description string
		Content     map[string]docsMedia
	}
}

type docsMedia struct {
	Schema    docsSchema
	EventData *docsSchema `json:"x-event-data"`
}

type docsSchema struct {
	Ref         string `json:"$ref"`
	Type        any
	Description string
	Items       *docsSchema
	Properties  map[string]*docsSchema
	Required    []string
}

// Kind is a schema's type in a word.
func (s *docsSchema) Kind() string {
	switch t := s.Type.(type) {
	case string:
		return t
	case []any:
		if len(t) > 0 {
			if name, ok := t[0].(string); ok {
				return name + " or null"
			}
		}
	}
	return ""
}

// Has reports whether a property is required.
func (s *docsSchema) Has(name string) bool { return slices.Contains(s.Required, name) }

type docsSection struct {
	Name, Description string
	Operations        []*docsOperation
}

type docsView struct {
	Title, Description string
	Sections           []docsSection
	Schemas            map[string]*docsSchema
}

func (d *docsDocument) view() docsView {
	v := docsView{Title: d.Info.Title, Description: d.Info.Description, Schemas: d.Components.Schemas}
	for _, tag := range d.Tags {
		s := docsSection{Name: tag.Name, Description: tag.Description}
		for path, byMethod := range d.Paths {
			for method, op := range byMethod {
				if slices.Contains(op.Tags, tag.Name) {
					op.Method, op.Path = strings.ToUpper(method), path
					s.Operations = append(s.Operations, op)
				}
			}
		}
		slices.SortFunc(s.Operations, func(a, b *docsOperation) int {
			return strings.Compare(a.Path+a.Method, b.Path+b.Method)
		})
		v.Sections = append(v.Sections, s)
	}
	return v
}
