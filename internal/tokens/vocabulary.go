package tokens

import (
	_ "embed"
	"math/bits"
)

// table is the o200k_base vocabulary (200,000 tokens; MIT, from
// openai/tiktoken) as a cuckoo hash table: 65,536 buckets of four entries of
// 48 bits, little-endian, 0 where none is; two bytes follow the last, so that
// every entry can be read as eight. An entry is a fingerprint (upper 30 bits)
// and the token's rank (lower 18); it lies in one of two buckets. Tokens of
// one byte are left out: every byte is a token. About one string in 100
// million is taken for a token that is none, never the other way.
// TestVocabulary builds the table anew and compares.
//
//go:embed o200k.table
var table string

const (
	buckets  = 1 << 16
	entry    = 6
	rankBits = 18
	// none is no token's rank, and higher than all of them.
	none  = 1<<rankBits - 1
	seed  = 0x9E3779B97F4A7C15
	prime = 0x9FB21C651E98DF25
	// longest is the length of the longest token: 128 blanks.
	longest = 128
)

// hash is the hash of a string, taken in steps of eight bytes.
func hash(s string) uint64 {
	h := uint64(seed)
	for ; len(s) >= 8; s = s[8:] {
		h = (bits.RotateLeft64(h, 5) ^ load(s, 0)) * prime
	}
	rest := uint64(len(s))
	for i := range len(s) {
		rest = rest<<8 | uint64(s[i])
	}
	h = (bits.RotateLeft64(h, 5) ^ rest) * prime
	return (h ^ h>>29) * seed
}

// load reads eight bytes, little-endian.
func load(s string, i int) uint64 {
	b := s[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// place turns a hash into a fingerprint and the first bucket it may lie in.
func place(h uint64) (mark uint32, bucket uint16) {
	return max(1, uint32(h>>16)&(1<<30-1)), uint16(h >> 48)
}

// sibling is the other bucket of a fingerprint.
func sibling(mark uint32, bucket uint16) uint16 { return bucket ^ uint16(mark*0x5BD1E995>>16) }

// rankOfPair is the rank of every two bytes: half of what merging asks for.
var rankOfPair = func() (t [1 << 16]uint32) {
	for i := range t {
		t[i] = rank(string([]byte{byte(i >> 8), byte(i)}))
	}
	return t
}()

// marked has a bit for the lower part of every fingerprint: most strings that
// are no tokens are told by it, without a look at the table, which is larger than
// the caches that are near.
var marked = func() (t [1 << (markBits - 6)]uint64) {
	for i := range buckets * 4 {
		if e := load(table, i*entry) & (1<<(8*entry) - 1); e != 0 {
			mark := e >> rankBits & (1<<markBits - 1)
			t[mark>>6] |= 1 << (mark & 63)
		}
	}
	return t
}()

const markBits = 20

// rank is the rank of s among the tokens, or none.
func rank(s string) uint32 {
	if len(s) > longest {
		return none
	}
	mark, bucket := place(hash(s))
	if low := mark & (1<<markBits - 1); marked[low>>6]>>(low&63)&1 == 0 {
		return none
	}
	if r := find(bucket, mark); r != none {
		return r
	}
	return find(sibling(mark, bucket), mark)
}

func find(bucket uint16, mark uint32) uint32 {
	at := int(bucket) * 4 * entry
	for i := range 4 {
		e := load(table, at+i*entry) & (1<<(8*entry) - 1)
		if uint32(e>>rankBits) == mark {
			return uint32(e) & none
		}
	}
	return none
}
