package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// pure are the packages whose answers depend on their arguments alone.
var pure = []string{"./internal/events", "./internal/message", "./internal/tokens", "./internal/window"}

// clock are the functions of package time that ask what time it is or wait.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}

func TestPurePackagesHaveNoClock(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		if !within(p.ImportPath, pure) {
			continue
		}
		for _, name := range p.GoFiles {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range clockUses(file) {
				t.Errorf("%s: time.%s in a pure package: take the time as an argument", fset.Position(call.Pos()), call.Sel.Name)
			}
		}
	}
}

func clockUses(file *ast.File) []*ast.SelectorExpr {
	var found []*ast.SelectorExpr
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains(clock, sel.Sel.Name) {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" {
				found = append(found, sel)
			}
		}
		return true
	})
	return found
}

func TestClockUsesAreSeen(t *testing.T) {
	t.Parallel()
	const src = "package p\nimport \"time\"\nvar a = time.Now()\nvar b = time.Second\nfunc f() { <-time.After(1) }\n"
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(clockUses(file)); n != 2 {
		t.Errorf("found %d uses, want 2", n)
	}
}
