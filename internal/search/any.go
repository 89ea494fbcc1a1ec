package search

// Want is one thing that a question asks for: a unit, or another form of it.
type Want struct {
	// Forms are what counts as found; the first is the query's own.
	Forms  []Unit
	Weight float64
}

// Wants are what a text may hold of a question, where none of it is required:
// its words, in all their English forms; pairs of characters where a script
// has no blanks; identifiers and phrases as a whole besides. The words that
// make a question are left out while there are others.
func Wants(q Query) []Want {
	w := gather(q)
	if len(w.strong) > 0 {
		return w.strong
	}
	if len(w.weak) > 0 {
		return w.weak
	}
	for _, u := range q.Units { // signs alone
		w.weak = append(w.weak, Want{Forms: []Unit{u}, Weight: 1})
	}
	return w.weak
}

// Vague reports a question that is words of grammar or signs alone: what holds
// them says nothing about the question.
func Vague(q Query) bool {
	w := gather(q)
	return len(w.strong) == 0
}

func gather(q Query) wants {
	w := wants{seen: map[string]struct{}{}}
	for _, u := range q.Units {
		w.unit(u)
	}
	return w
}

type wants struct {
	strong, weak []Want
	seen         map[string]struct{}
}

func (w *wants) unit(u Unit) {
	for i, a := range u.Atoms {
		switch {
		case a.Kind == Word && u.Prefix && i == len(u.Atoms)-1:
			w.add(Unit{Raw: a.Term, Atoms: []Atom{bare(a)}, Prefix: true}, a.Term+"*")
		case a.Kind == Word:
			w.word(a.Term)
		case a.Kind == Char && i > 0 && a.Glued && u.Atoms[i-1].Kind == Char:
			pair := u.Atoms[i-1].Term + a.Term
			w.add(Unit{Raw: pair, Atoms: []Atom{bare(u.Atoms[i-1]), a}}, pair)
		case a.Kind == Char && (i+1 == len(u.Atoms) || u.Atoms[i+1].Kind != Char || !u.Atoms[i+1].Glued):
			w.add(Unit{Raw: a.Term, Atoms: []Atom{bare(a)}}, a.Term)
		}
	}
	if core := u.core(); len(core.Atoms) > 1 && core.compound() {
		w.add(core, core.key())
	}
}

func (w *wants) add(u Unit, key string) {
	if _, again := w.seen[key]; !again {
		w.seen[key] = struct{}{}
		w.strong = append(w.strong, Want{Forms: []Unit{u}, Weight: 1})
	}
}

func (w *wants) word(term string) {
	stem := Stem(term)
	if _, again := w.seen[stem]; again {
		return
	}
	w.seen[stem] = struct{}{}
	want := Want{Forms: []Unit{wordUnit(term)}, Weight: 1}
	for _, f := range Forms(term) {
		want.Forms = append(want.Forms, wordUnit(f))
	}
	if questionWord(term) {
		w.weak = append(w.weak, want)
		return
	}
	w.strong = append(w.strong, want)
}

// core is a unit without the signs around it.
func (u Unit) core() Unit {
	from, to := 0, len(u.Atoms)
	for from < to && u.Atoms[from].Kind == Sign {
		from++
	}
	for to > from && u.Atoms[to-1].Kind == Sign {
		to--
	}
	if from < to {
		u.Atoms = append([]Atom{bare(u.Atoms[from])}, u.Atoms[from+1:to]...)
	} else {
		u.Atoms = nil
	}
	return u
}

// compound reports a unit whose words belong together: an identifier or a
// phrase, not a word and its genitive or a run of characters.
func (u Unit) compound() bool {
	words := 0
	for _, a := range u.Atoms {
		if a.Kind == Word && len(a.Term) > 1 {
			words++
		}
	}
	return words > 1
}

func bare(a Atom) Atom {
	a.Glued = false
	return a
}

func wordUnit(term string) Unit {
	return Unit{Raw: term, Atoms: []Atom{{To: len(term), Kind: Word, Term: term}}}
}
