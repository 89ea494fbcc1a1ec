package config

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Env is the option's variable in the environment.
func (o Option) Env() string {
	return "ENGINED_" + strings.ToUpper(strings.ReplaceAll(o.Name, "-", "_"))
}

// AddFlags declares the flags of the scope's options. Defaults override the
// table's, by name. A flag that does not parse is refused by fs.Parse.
func AddFlags(fs *pflag.FlagSet, scope Scope, defaults map[string]string) {
	var scratch Config
	for _, o := range Options() {
		if o.Scope&scope == 0 {
			continue
		}
		v := o.bind(&scratch)
		if d := o.defaultIn(defaults); d != "" {
			mustSet(o, v, d)
		}
		// pflag would take a quoted word for the value's name.
		usage := strings.ReplaceAll(o.Usage, "`", "")
		f := fs.VarPF(v, o.Name, "", usage+" ("+o.Env()+")")
		if v.Type() == "bool" {
			f.NoOptDefVal = "true"
		}
		if o.Secret {
			f.DefValue = ""
		}
	}
}

// Source tells which of the four said a setting.
type Source string

// Setting is one option and the value that counts.
type Setting struct {
	Option
	Value  string
	Source Source
}

// Input is what Load merges. Every field may be zero.
type Input struct {
	// Flags are parsed flags; those that were set count.
	Flags *pflag.FlagSet
	// LookupEnv is os.LookupEnv.
	LookupEnv func(string) (string, bool)
	// File is the path of engined.yaml; empty for none.
	File string
	// Defaults override the table's, by name.
	Defaults map[string]string
}

// Load merges and validates. The settings come in the table's order.
func Load(in Input) (Config, []Setting, error) {
	var file map[string]entry
	if in.File != "" {
		var err error
		if file, err = readFile(in.File); err != nil {
			return Config{}, nil, err
		}
	}
	var c Config
	var settings []Setting
	for _, o := range Options() {
		v := o.bind(&c)
		if d := o.defaultIn(in.Defaults); d != "" {
			mustSet(o, v, d)
		}
		source := Source("default")
		if e, ok := file[o.Name]; ok {
			if err := v.Set(e.text); err != nil {
				return Config{}, nil, fmt.Errorf("%s: line %d: %s: %w", in.File, e.line, o.Name, err)
			}
			source = Source(in.File)
		}
		if name, said, ok := o.lookup(in.LookupEnv); ok {
			if err := v.Set(said); err != nil {
				return Config{}, nil, fmt.Errorf("environment: %s: %w", name, err)
			}
			source = Source(name)
		}
		if f := in.lookupFlag(o.Name); f != nil && f.Changed {
			if err := v.Set(f.Value.String()); err != nil {
				return Config{}, nil, fmt.Errorf("--%s: %w", o.Name, err)
			}
			source = Source("--" + o.Name)
		}
		settings = append(settings, Setting{Option: o, Value: v.String(), Source: source})
	}
	return c, settings, c.validate()
}

// lookup finds the variable that counts; an empty one is unset.
func (o Option) lookup(env func(string) (string, bool)) (name, value string, ok bool) {
	if env == nil {
		return "", "", false
	}
	for _, name := range []string{o.Env(), o.Alias} {
		if name == "" {
			continue
		}
		if v, ok := env(name); ok && v != "" {
			return name, v, true
		}
	}
	return "", "", false
}

func (in Input) lookupFlag(name string) *pflag.Flag {
	if in.Flags == nil {
		return nil
	}
	return in.Flags.Lookup(name)
}

func (o Option) defaultIn(overrides map[string]string) string {
	if d, ok := overrides[o.Name]; ok {
		return d
	}
	return o.Default
}

// mustSet sets a default, which is right or the table is wrong.
func mustSet(o Option, v Value, text string) {
	if err := v.Set(text); err != nil {
		panic(fmt.Sprintf("config: default of %s: %v", o.Name, err))
	}
}
