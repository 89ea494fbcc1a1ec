// Command openai-gateway is a small gateway: it reads lines, runs a turn for
// each and prints the answers. The model is anything that speaks OpenAI's chat
// completions; the context engine is anything that speaks the contract over HTTP,
// such as an engined node:
//
//	engined dev &
//	openai-gateway -engine http://127.0.0.1:7420 -model-url http://127.0.0.1:11434/v1 -model llama3.2
//
// It keeps no history itself: stop it, start it anywhere with the same -session,
// and the conversation goes on.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"

	"github.com/engined/engined/contextengine"
	"github.com/engined/engined/contextengine/remote"
	"github.com/engined/engined/host"
)

func main() {
	engineURL := flag.String("engine", "http://127.0.0.1:7420", "base URL of the context engine")
	modelURL := flag.String("model-url", "https://api.openai.com/v1", "base URL of the model; its key is OPENAI_API_KEY")
	g := gateway{}
	flag.StringVar(&g.model, "model", "gpt-4.1-mini", "model to ask")
	flag.StringVar(&g.session, "session", "agent:main:cli", "session key")
	flag.IntVar(&g.window, "window", 128_000, "the model's context window, in tokens")
	flag.IntVar(&g.reserve, "reserve", 8_000, "tokens to keep for the answer and the system prompt")
	flag.Parse()

	if err := g.serve(*engineURL, *modelURL); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve talks on standard input and output until the input ends.
func (g gateway) serve(engineURL, modelURL string) error {
	client, err := remote.New(remote.Config{
		URL: engineURL, Token: os.Getenv("ENGINED_KEY"),
		Info: &contextengine.Info{ID: "engined", Name: "engined", OwnsCompaction: true},
	})
	if err != nil {
		return err
	}
	defer client.Close()
	return g.run(context.Background(), client, &chatModel{base: modelURL, key: os.Getenv("OPENAI_API_KEY")}, os.Stdin, os.Stdout)
}

// gateway is the conversation and the model's measures.
type gateway struct {
	model, session  string
	window, reserve int
}

const system = "You are a helpful assistant. Use the tools where they help."

// run answers line by line until the input ends. A turn that fails or is aborted
// is told, and the next one goes on.
func (g gateway) run(ctx context.Context, engine contextengine.Engine, model host.Model, in io.Reader, out io.Writer) error {
	h, err := host.New(host.Config{
		Engine: engine, Model: model, Tools: clock{}, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	defer h.Close(context.WithoutCancel(ctx))
	session := contextengine.Session{SessionKey: g.session, SessionID: "cli-" + rand.Text()}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if lines.Text() == "" {
			continue
		}
		message, err := json.Marshal(map[string]string{"role": "user", "content": lines.Text()})
		if err != nil {
			return err
		}
		// An interrupt aborts the turn; between turns it ends the program.
		turn, stop := signal.NotifyContext(ctx, os.Interrupt)
		res, err := h.Turn(turn, host.TurnRequest{
			Session: session, ID: rand.Text(), Message: message, Prompt: lines.Text(),
			Model: g.model, System: system, TokenBudget: g.window - g.reserve, ContextWindow: g.window,
		})
		stop()
		if err != nil {
			fmt.Fprintln(out, "error:", err)
			continue
		}
		fmt.Fprintln(out, textOf(res.Answer))
		if res.CommitErr != nil {
			fmt.Fprintln(out, "(not stored:", res.CommitErr, ")")
		}
		session = res.Session
	}
	return lines.Err()
}

func textOf(message json.RawMessage) string {
	var m struct {
		Content string `json:"content"`
	}
	if json.Unmarshal(message, &m) != nil {
		return string(message)
	}
	return m.Content
}
