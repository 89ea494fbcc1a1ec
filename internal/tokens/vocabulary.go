package tokens

import (
	_ "embed"
	"math/bits"
)

// table is the o200k_base vocabulary (200,000 tokens; MIT, from
// openai/tiktoken) as a cuckoo hash table: 65,536 buckets of four entries of
// 48 bits, little-endian, 0 where none is. An entry is a fingerprint (upper 30
// bits) and the token's rank (lower 18); it lies in one of two buckets. Tokens
// of one byte are left out: every byte is a token. About one string in 100
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

// hash is the hash of a string.
func hash(s string) uint64 {
	h := uint64(seed)
	for i := range len(s) {
		h = (bits.RotateLeft64(h, 5) ^ uint64(s[i])) * prime
	}
	return (h ^ h>>29) * seed
}

// place turns a hash into a fingerprint and the first bucket it may lie in.
func place(h uint64) (print uint32, bucket uint16) {
	return max(1, uint32(h>>16)&(1<<30-1)), uint16(h >> 48)
}

// sibling is the other bucket of a fingerprint.
func sibling(print uint32, bucket uint16) uint16 { return bucket ^ uint16(print*0x5BD1E995>>16) }

// rank is the rank of s among the tokens, or none.
func rank(s string) uint32 {
	if len(s) > longest {
		return none
	}
	print, bucket := place(hash(s))
	if r := find(bucket, print); r != none {
		return r
	}
	return find(sibling(print, bucket), print)
}

func find(bucket uint16, print uint32) uint32 {
	b := table[int(bucket)*4*entry:][:4*entry]
	for i := 0; i < 4*entry; i += entry {
		e := uint64(b[i]) | uint64(b[i+1])<<8 | uint64(b[i+2])<<16 | uint64(b[i+3])<<24 |
			uint64(b[i+4])<<32 | uint64(b[i+5])<<40
		if uint32(e>>rankBits) == print {
			return uint32(e) & none
		}
	}
	return none
}
