package pullet

import (
	"encoding/binary"
	"math/bits"
)

// The primes of XXH64. Variables, so that the sums below wrap around.
var (
	prime1 uint64 = 0x9E3779B185EBCA87
	prime2 uint64 = 0xC2B2AE3D27D4EB4F
	prime3 uint64 = 0x165667B19E3779F9
	prime4 uint64 = 0x85EBCA77C2B2AE63
	prime5 uint64 = 0x27D4EB2F165667C5
)

func xxhRound(acc, input uint64) uint64 {
	return bits.RotateLeft64(acc+input*prime2, 31) * prime1
}

func xxhMerge(h, acc uint64) uint64 {
	return (h^xxhRound(0, acc))*prime1 + prime4
}

// xxh64 is XXH64 with seed 0: the digest of an image.
func xxh64(b []byte) uint64 {
	n := uint64(len(b))
	h := prime5
	if n >= 32 {
		a1, a2, a3, a4 := prime1+prime2, prime2, uint64(0), -prime1
		for ; len(b) >= 32; b = b[32:] {
			a1 = xxhRound(a1, binary.LittleEndian.Uint64(b[0:8]))
			a2 = xxhRound(a2, binary.LittleEndian.Uint64(b[8:16]))
			a3 = xxhRound(a3, binary.LittleEndian.Uint64(b[16:24]))
			a4 = xxhRound(a4, binary.LittleEndian.Uint64(b[24:32]))
		}
		h = bits.RotateLeft64(a1, 1) + bits.RotateLeft64(a2, 7) +
			bits.RotateLeft64(a3, 12) + bits.RotateLeft64(a4, 18)
		h = xxhMerge(xxhMerge(xxhMerge(xxhMerge(h, a1), a2), a3), a4)
	}
	h += n
	for ; len(b) >= 8; b = b[8:] {
		h = bits.RotateLeft64(h^xxhRound(0, binary.LittleEndian.Uint64(b)), 27)*prime1 + prime4
	}
	if len(b) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(b))*prime1, 23)*prime2 + prime3
		b = b[4:]
	}
	for _, c := range b {
		h = bits.RotateLeft64(h^uint64(c)*prime5, 11) * prime1
	}
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}
