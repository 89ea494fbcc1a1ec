package arch

import "testing"

// TestTheContractNamesTestsThatExist: a rule whose test was renamed or removed
// must not look kept.
func TestTheContractNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	holdNamed(t, "docs/contract.md", declaredTests(t), 50)
}
