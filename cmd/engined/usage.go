package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/engined/engined/internal/config"
)

// oneArg wants the one argument that the command's Use names.
func oneArg(cmd *cobra.Command, args []string) error {
	_, name, _ := strings.Cut(cmd.Use, " ")
	switch {
	case len(args) == 0:
		return fmt.Errorf("%s is missing: %s %s", name, cmd.CommandPath(), name)
	case len(args) > 1:
		return fmt.Errorf("one %s is expected, not %d; %q is too many", name, len(args), args[1])
	}
	return nil
}

// someFiles wants at least one file.
func someFiles(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("FILE is missing: engined %s", cmd.Use)
	}
	return nil
}

// numberNames say what a number is a number of, by flag.
var numberNames = map[string]string{"budget": "a number of tokens", "as-of": "a seq", "after": "a seq", "epoch": "the number of an epoch", "limit": "a number of rows, 0 or more"}

// flagError says what is wrong with a flag in the words of who typed it.
func flagError(_ *cobra.Command, err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	for _, o := range config.Options() {
		if o.Secret && o.Name == bad.GetFlag().Name { // the value is not repeated
			return fmt.Errorf("--%s: %w", o.Name, bad.Unwrap())
		}
	}
	switch f := bad.GetFlag(); f.Value.Type() {
	case "int", "int64":
		what := numberNames[f.Name]
		if what == "" {
			what = "a whole number"
		}
		return fmt.Errorf("--%s: %q is not %s", f.Name, bad.GetValue(), what)
	case "bool":
		return fmt.Errorf("--%s: %q is neither true nor false", f.Name, bad.GetValue())
	}
	return fmt.Errorf("--%s: %w", bad.GetFlag().Name, bad.Unwrap())
}
