package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

var (
	talkBudgets  = []int{2_000, 4_000, 8_000, 12_000, 16_000}
	agentBudgets = []int{16_000, 32_000, 64_000, 128_000, 200_000}
	methods      = []string{truncateOldest, "rolling", "lossless"}
)

func main() {
	locomo := flag.String("locomo", "", "a LoCoMo file, or a directory of them")
	transcripts := flag.String("transcripts", "", "a directory of agents' transcripts (*.jsonl)")
	only := flag.Bool("windows", false, "measure windows only, and not what searches find")
	out := flag.String("out", "", "write the report to this file too, if everything held")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *locomo, *transcripts, *out, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quality:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, locomo, transcripts, out string, only bool) (err error) {
	if locomo == "" && transcripts == "" {
		return errors.New("name what to measure with -locomo or -transcripts")
	}
	b, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(context.WithoutCancel(ctx))) }()
	var r report
	if locomo != "" {
		if err := b.talks(ctx, locomo, only, &r); err != nil {
			return err
		}
	}
	if transcripts != "" {
		histories, err := readTranscripts(ctx, transcripts)
		if err != nil {
			return err
		}
		if r.agents, err = b.windows(ctx, histories, agentBudgets); err != nil {
			return err
		}
		r.transcripts = len(histories)
	}
	text := r.markdown()
	fmt.Print(text)
	if err := r.verdict(); err != nil {
		return err
	}
	if out == "" {
		return nil
	}
	return os.WriteFile(out, []byte(text), 0o644)
}

// talks measures search and windows on conversations.
func (b *bench) talks(ctx context.Context, path string, only bool, r *report) error {
	convs, err := readLocomo(path)
	if err != nil {
		return err
	}
	if !only {
		if r.search, err = b.searches(ctx, convs); err != nil {
			return err
		}
	}
	var histories []history
	for i := range convs {
		c := &convs[i]
		h := history{key: c.id, questions: c.questions}
		for j := range c.turns {
			h.messages = append(h.messages, c.turns[j].message())
			h.said = append(h.said, c.turns[j].text)
		}
		if h.hits = make([][]int, len(c.questions)); !only {
			if h.hits, err = b.firstTen(ctx, c); err != nil {
				return err
			}
		}
		histories = append(histories, h)
		r.turns += len(c.turns)
	}
	r.conversations = len(convs)
	r.talks, err = b.windows(ctx, histories, talkBudgets)
	return err
}

// windows plays every history at every budget with every method.
func (b *bench) windows(ctx context.Context, histories []history, budgets []int) ([]line, error) {
	var out []line
	for _, budget := range budgets {
		for _, name := range methods {
			l := line{budget: budget, name: name}
			for i := range histories {
				if err := b.play(ctx, name, budget, &histories[i], &l); err != nil {
					return nil, err
				}
			}
			out = append(out, l)
			fmt.Fprintf(os.Stderr, "%s at %d: done\n", name, budget)
		}
	}
	return out, nil
}
