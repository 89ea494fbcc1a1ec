package message_test

import (
	"strings"
	"testing"

	"github.com/engined/engined/internal/message"
)

var benchBodies = map[string][]byte{
	"user":                    []byte(`{"role":"user","content":"Please look at the log and tell me what failed.","timestamp":1790000000000,"idempotencyKey":"k:user"}`),
	"call":                    []byte(`{"role":"assistant","content":[{"type":"thinking","thinking":"` + strings.Repeat("think ", 50) + `"},{"type":"toolCall","id":"call_1","name":"exec","arguments":{"command":"ls -la","cwd":"/w"}}],"api":"openai-completions","provider":"p","model":"m","usage":{"input":1000,"output":20,"cacheRead":50,"cacheWrite":0,"totalTokens":1070,"cost":{"input":0,"output":0,"total":0}},"stopReason":"toolUse","timestamp":1790000000000}`),
	"image":                   []byte(`{"role":"toolResult","toolCallId":"call_1","toolName":"shot","content":[{"type":"image","data":"` + strings.Repeat("iVBORw0K", 3<<17) + `","mimeType":"image/png"}],"isError":false}`),
	"tiny elements":           []byte(`{"role":"user","content":[` + strings.Repeat(`"a",`, 1<<18) + `""]}`),
	"result of tiny elements": []byte(`{"role":"toolResult","toolCallId":"a","content":[` + strings.Repeat(`{},`, 1<<18) + `""]}`),
}

func BenchmarkRead(b *testing.B) {
	for name, body := range benchBodies {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := message.Read(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	for name, body := range benchBodies {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := message.Check(body, message.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkHash(b *testing.B) {
	for name, body := range benchBodies {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				message.Hash(body, false)
			}
		})
	}
}
