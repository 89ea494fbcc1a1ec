package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Summarizer is one entry of summarizers.
type Summarizer struct {
	// Name is what the operator calls it; logs, summaries and spend carry it.
	Name string
	// Kind is openai, anthropic, host or extractive.
	Kind  string
	Model string
	// URL is empty for the provider's own.
	URL string
	// InputPrice and OutputPrice are in US dollars per million tokens, DailyLimit
	// in US dollars a tenant and day; 0 for none.
	InputPrice, OutputPrice, DailyLimit float64
}

// KeyEnv is the variable that holds the summarizer's key. Keys are in no setting,
// so none is printed, logged or kept in a file of settings.
func (s Summarizer) KeyEnv() string {
	return "ENGINED_SUMMARIZER_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_")) + "_KEY"
}

var summarizerName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// parseSummarizer reads NAME=KIND[:MODEL][@URL]. Models have colons, slashes and
// dots in their names, so the URL is what follows "@http".
func parseSummarizer(entry string) (Summarizer, error) {
	name, rest, ok := strings.Cut(entry, "=")
	s := Summarizer{Name: name}
	if !ok || !summarizerName.MatchString(name) {
		return s, errors.New("an entry is not NAME=KIND:MODEL@URL, with a name of small letters, digits and -")
	}
	if at := strings.LastIndex(rest, "@http"); at >= 0 {
		rest, s.URL = rest[:at], rest[at+1:]
		u, err := url.Parse(s.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
			return s, fmt.Errorf("summarizer %s: the URL must be http or https, without a user and without a query; its key goes into %s", name, s.KeyEnv())
		}
	}
	s.Kind, s.Model, _ = strings.Cut(rest, ":")
	switch s.Kind {
	case "openai", "anthropic":
		if s.Model == "" {
			return s, fmt.Errorf("summarizer %s: no model", name)
		}
	case "host":
		if s.URL != "" {
			return s, fmt.Errorf("summarizer %s: a host's model has no URL, gateways ask for its work", name)
		}
	case "extractive":
		if s.Model != "" || s.URL != "" {
			return s, fmt.Errorf("summarizer %s: extractive has neither a model nor a URL", name)
		}
	default:
		return s, fmt.Errorf("summarizer %s: %q is not one of openai, anthropic, host, extractive", name, s.Kind)
	}
	return s, nil
}

func checkSummarizer(entry string) error {
	_, err := parseSummarizer(entry)
	return err
}

func checkSummarizerTenant(entry string) error {
	tenant, names, ok := strings.Cut(entry, "=")
	if !ok || tenant == "" || names == "" {
		return fmt.Errorf("%q is not TENANT=NAME+NAME", entry)
	}
	return nil
}

func checkPrice(entry string) error {
	name, prices, ok := strings.Cut(entry, "=")
	in, out, two := strings.Cut(prices, "/")
	if !ok || !two || !summarizerName.MatchString(name) || dollars(in) < 0 || dollars(out) < 0 {
		return fmt.Errorf("%q is not NAME=INPUT/OUTPUT, such as small=0.15/0.60", entry)
	}
	return nil
}

func checkLimit(entry string) error {
	name, limit, ok := strings.Cut(entry, "=")
	if !ok || !summarizerName.MatchString(name) || dollars(limit) <= 0 {
		return fmt.Errorf("%q is not NAME=DOLLARS", entry)
	}
	return nil
}

// dollars is negative for what is no amount.
func dollars(s string) float64 {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(v >= 0 && v <= 1e6) {
		return -1
	}
	return v
}

// Summarizers are the entries of summarizers with their prices and limits, in
// their order.
func (c Config) Summarizers() []Summarizer {
	out := make([]Summarizer, 0, len(c.SummarizerList))
	for _, entry := range c.SummarizerList {
		s, err := parseSummarizer(entry)
		if err != nil {
			continue // checked when it was set
		}
		for _, p := range c.SummarizerPrices {
			if prices, ok := strings.CutPrefix(p, s.Name+"="); ok {
				in, out, _ := strings.Cut(prices, "/")
				s.InputPrice, s.OutputPrice = dollars(in), dollars(out)
			}
		}
		for _, l := range c.SummarizerLimits {
			if limit, ok := strings.CutPrefix(l, s.Name+"="); ok {
				s.DailyLimit = dollars(limit)
			}
		}
		out = append(out, s)
	}
	return out
}

// TenantSummarizers maps tenants to the names of their summarizers.
func (c Config) TenantSummarizers() map[string][]string {
	out := make(map[string][]string, len(c.SummarizerTenants))
	for _, entry := range c.SummarizerTenants {
		tenant, names, _ := strings.Cut(entry, "=")
		out[tenant] = strings.Split(names, "+")
	}
	return out
}

func (c Config) checkSummarizers() []error {
	var errs []error
	var names []string
	priced := map[string]bool{}
	for _, s := range c.Summarizers() {
		if slices.Contains(names, s.Name) {
			errs = append(errs, fmt.Errorf("summarizers: the name %s stands there twice", s.Name))
		}
		names = append(names, s.Name)
		priced[s.Name] = s.InputPrice > 0 || s.OutputPrice > 0
	}
	for _, entry := range slices.Concat(c.SummarizerPrices, c.SummarizerLimits) {
		if name, _, _ := strings.Cut(entry, "="); !slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("summarizer-prices and summarizer-limits: no summarizer is named %s", name))
		}
	}
	for _, entry := range c.SummarizerLimits {
		if name, _, _ := strings.Cut(entry, "="); slices.Contains(names, name) && !priced[name] {
			errs = append(errs, fmt.Errorf("summarizer-limits: %s has no price, so nothing would ever reach its limit; set summarizer-prices", name))
		}
	}
	for tenant, chosen := range c.TenantSummarizers() {
		for _, name := range chosen {
			if !slices.Contains(names, name) {
				errs = append(errs, fmt.Errorf("summarizer-tenants: %s wants %s, and no summarizer is named so", tenant, name))
			}
		}
	}
	return errs
}
