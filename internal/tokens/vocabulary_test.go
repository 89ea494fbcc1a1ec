package tokens

import (
	"bytes"
	"encoding/binary"
	"flag"
	"os"
	"testing"

	"github.com/tiktoken-go/tokenizer"
)

var update = flag.Bool("update", false, "write o200k.table anew")

// TestVocabulary holds the embedded table against the vocabulary it was made of.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	codec := o200k(t)
	var built [buckets][4]uint64
	random := uint64(seed)
	n := 0
	for id := range uint(vocabulary) {
		s, err := codec.Decode([]uint{id})
		if err != nil {
			t.Fatalf("token %d: %v", id, err)
		}
		if len(s) < 2 {
			continue
		}
		if len(s) > longest {
			t.Fatalf("token %d has %d bytes", id, len(s))
		}
		mark, bucket := place(hash(s))
		e := uint64(mark)<<rankBits | uint64(id)
		for !put(&built[bucket], e) && !put(&built[sibling(uint32(e>>rankBits), bucket)], e) {
			// Both are full: take another's place, and find one for that.
			random = random*prime + 1
			lane := random >> 60 % 4
			e, built[bucket][lane] = built[bucket][lane], e
			bucket = sibling(uint32(e>>rankBits), bucket)
		}
		n++
	}
	want := make([]byte, 0, buckets*4*entry+8)
	for _, b := range built {
		for _, e := range b {
			want = binary.LittleEndian.AppendUint64(want, e)[:len(want)+entry]
		}
	}
	want = append(want, 0, 0)
	if *update {
		if err := os.WriteFile("o200k.table", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want, []byte(table)) {
		t.Errorf("o200k.table is not what %d tokens give; run with -update", n)
	}
}

// vocabulary is how many ordinary tokens o200k_base has.
const vocabulary = 199_998

func put(bucket *[4]uint64, e uint64) bool {
	for i, have := range bucket {
		if have == 0 {
			bucket[i] = e
			return true
		}
	}
	return false
}

func o200k(t reporter) tokenizer.Codec {
	t.Helper()
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	return codec
}
