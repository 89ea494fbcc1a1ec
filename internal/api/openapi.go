package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/engined/engined/internal/access"
)

// OpenAPI is the OpenAPI 3.1 document of an API with these limits; the zero
// Limits are the defaults. The same limits always give the same bytes.
func OpenAPI(limits Limits) ([]byte, error) {
	return document(operations(), limits.withDefaults())
}

const intro = `A context engine for AI agents. Gateways send every message of a session; before each model call they
ask for the window to send, within a token budget. Bodies and answers are the host contract's parameters and results.

Session keys in paths are percent-encoded (` + "`agent%3Amain%3Amain`" + `). A message is any JSON object; it comes back byte
for byte. Unknown members of a request are ignored. Errors are problem details whose ` + "`type`" + ` ends in a slug that never changes.`

func document(ops []*operation, limits Limits) ([]byte, error) {
	schemas := newSchemas(limits)
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "engined", Version: "1", Description: intro + "\n\n" + limitsText(limits),
			License:    &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
			Extensions: map[string]any{"x-limits": limits},
		},
		Components: &huma.Components{
			Schemas:         schemas.registry,
			SecuritySchemes: map[string]*huma.SecurityScheme{"key": {Type: "http", Scheme: "bearer", Description: "An API key. It carries the tenant and its scopes; admin includes all."}},
		},
		Tags: []*huma.Tag{
			{Name: tagTurns, Description: "What a host writes."},
			{Name: tagWindows, Description: "What the model sees."},
			{Name: tagSessions, Description: "What is stored."},
			{Name: tagSearch, Description: "Everything that was said, compacted or not."},
			{Name: tagFeed, Description: "All of a tenant's events."},
			{Name: tagNode, Description: "The node itself."},
		},
		Paths: map[string]*huma.PathItem{},
	}
	problem := schemas.of(of[Problem]())
	for _, op := range ops {
		doc.AddOperation(describe(op, schemas, problem))
	}
	schemas.finish()
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("openapi document: %w", err)
	}
	return append(b, '\n'), nil
}

func limitsText(l Limits) string {
	return fmt.Sprintf("Limits of this node: a message %s, a request body %s or %d messages, JSON nesting %d, keys %d bytes of "+
		"UTF-8, pages %d rows, %d open streams a tenant. Beyond them: 413 or 422.",
		bytesText(l.MessageBytes), bytesText(l.BatchBytes), l.BatchMessages, l.Nesting, l.KeyBytes, l.Page, l.Streams)
}

func bytesText(n int64) string {
	if n%(1<<20) == 0 {
		return strconv.FormatInt(n>>20, 10) + " MiB"
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

func describe(op *operation, schemas *schemas, problem *huma.Schema) *huma.Operation {
	o := &huma.Operation{
		Method: op.method, Path: op.path, OperationID: op.id, Tags: []string{op.tag}, Summary: op.summary,
		Description: op.description, Responses: map[string]*huma.Response{},
	}
	if !op.public {
		// Any one of them will do.
		for _, scope := range (op.scopes | access.Admin).Names() {
			o.Security = append(o.Security, map[string][]string{"key": {scope}})
		}
	}
	for segment := range strings.SplitSeq(op.path, "/") {
		switch segment {
		case "{key}":
			least, most := 1, schemas.limits.KeyBytes
			o.Parameters = append(o.Parameters, &huma.Param{
				Name: "key", In: "path", Required: true, Description: "The session key, percent-encoded.", Example: "agent:main:main",
				Schema: &huma.Schema{Type: huma.TypeString, MinLength: &least, MaxLength: &most},
			})
		case "{engine}":
			o.Parameters = append(o.Parameters, &huma.Param{
				Name: "engine", In: "path", Required: true, Description: "The engine's id, percent-encoded.", Example: "acme",
				Schema: &huma.Schema{Type: huma.TypeString},
			})
		case "{id}":
			o.Parameters = append(o.Parameters, &huma.Param{
				Name: "id", In: "path", Required: true, Description: "The summary's id.", Schema: integer(1),
			})
		}
	}
	for _, q := range op.query {
		s := &huma.Schema{Type: huma.TypeString}
		if q.integer {
			s = integer(q.least)
		}
		o.Parameters = append(o.Parameters, &huma.Param{Name: q.name, In: q.in, Description: q.doc, Schema: s})
	}
	if op.request != nil {
		o.RequestBody = &huma.RequestBody{
			Required: !op.bodyOptional,
			Content:  map[string]*huma.MediaType{"application/json": {Schema: schemas.of(op.request)}},
		}
	}
	o.Responses["200"] = answerOf(op, schemas)
	for status, titles := range refusalsOf(op) {
		o.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: strings.Join(titles, " "),
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: problem}},
		}
	}
	return o
}

func answerOf(op *operation, schemas *schemas) *huma.Response {
	media := op.media
	if media == "" {
		media = "application/json"
	}
	content := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	r := &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{media: content}}
	switch {
	case op.kind == stream:
		// Server-sent events are text; what stands in data is said beside it.
		content.Extensions = map[string]any{"x-event-data": schemas.of(op.answer)}
	case op.answer != nil:
		content.Schema = schemas.of(op.answer)
	}
	return r
}

func integer(least float64) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &least}
}

// refusalsOf lists the problems of an operation by status, each as `slug`: title.
func refusalsOf(op *operation) map[int][]string {
	all := slices.Clone(op.refusals)
	if !op.public {
		all = append(all, kindUnauthorized, kindForbidden, kindRate, kindUnavailable, kindInternal)
		if op.kind != stream {
			all = append(all, kindDeadline, kindBusy)
		}
		if grows()[op.id] != 0 {
			all = append(all, kindTenantLimit)
		}
	}
	if op.keyed || op.query != nil {
		all = append(all, kindValidation)
	}
	if strings.Contains(op.path, "{id}") {
		all = append(all, kindNotFound)
	}
	if op.method == http.MethodPost {
		all = append(all, kindEngineFailed, kindMalformed, kindSlowBody, kindTooLarge, kindMedia, kindBusy)
	} else if op.query != nil {
		all = append(all, kindMalformed)
	}
	by := map[int][]string{}
	for _, k := range kinds() {
		if slices.Contains(all, k) {
			by[k.status] = append(by[k.status], "`"+k.slug+"`: "+k.title+".")
		}
	}
	return by
}

// schemas derives JSON schemas from the wire's Go types.
type schemas struct {
	registry huma.Registry
	limits   Limits
}

func newSchemas(limits Limits) *schemas {
	return &schemas{registry: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer), limits: limits}
}

func (s *schemas) of(t reflect.Type) *huma.Schema { return s.registry.Schema(t, true, t.Name()) }

// finish says what Go types can't: what a message is, what a field means, and
// that members may be added everywhere.
func (s *schemas) finish() {
	all := s.registry.Map()
	all["Message"] = &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: true, Title: "Message",
		Description: fmt.Sprintf("A message of any known dialect (OpenClaw, OpenAI chat, Anthropic), kept byte for byte: at most %s, nested at most %d deep.",
			bytesText(s.limits.MessageBytes), s.limits.Nesting),
	}
	ref := &huma.Schema{Ref: "#/components/schemas/Message"}
	for name, schema := range all {
		if name == "Message" {
			continue
		}
		schema.AdditionalProperties = nil
		if !slices.Contains(schema.Required, "sessionKey") {
			// The contract's session: over HTTP its key is in the path.
			delete(schema.Properties, "sessionKey")
		}
		for field, p := range schema.Properties {
			switch field {
			case "message":
				schema.Properties[field] = ref
				continue
			case "messages":
				p.Items = ref
			case "data", "details", "admission", "terminal":
				p.Type, p.AdditionalProperties = huma.TypeObject, true
			}
			if p.Type == huma.TypeArray {
				p.Nullable = false
			}
			if d := fieldDoc(name, field); d.text != "" {
				p.Description, p.Minimum = d.text, d.least
			}
		}
	}
	all["BootstrapParams"].Required = append(all["BootstrapParams"].Required, "sessionId")
	all["Usage"].Required = nil // what is absent counts as 0
	all["Problem"].Properties["type"].Enum = problemTypes()
}

func problemTypes() []any {
	var types []any
	for _, k := range kinds() {
		types = append(types, problemBase+k.slug)
	}
	return types
}
