package pullet

import "math/bits"

// hashedKey is the longest key that xxh3 takes: it has the short forms only.
const hashedKey = 128

// secret is the beginning of the secret that XXH3 uses when it is given none.
var secret = [16]uint64{
	0xBE4BA423396CFEB8, 0x1CAD21F72C81017C, 0xDB979083E96DD4DE, 0x1F67B3B7A4A44072,
	0x78E5C0CC4EE679CB, 0x2172FFCC7DD05A82, 0x8E2443F7744608B8, 0x4C263A81E69035E0,
	0xCB00C391BB52283C, 0xA32E531B8B65D088, 0x4EF90DA297486471, 0xD8ACDEA946EF1938,
	0x3F349CE33F76FAA8, 0x1D4F0BC7C7BBDCF9, 0x3159B4CD4BE0518A, 0x647378D9C97E9FC8,
}

func le32(s string, at int) uint64 {
	s = s[at : at+4]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}

func le64(s string, at int) uint64 {
	s = s[at : at+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// fold is the 128 bits of a product, its halves on each other.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

func mix16(s string, at, word int) uint64 {
	return fold(le64(s, at)^secret[word], le64(s, at+8)^secret[word+1])
}

func avalanche(h uint64) uint64 {
	h = (h ^ h>>37) * 0x165667919E3779F9
	return h ^ h>>32
}

// xxh3 is XXH3 of 64 bits with seed 0, of at most hashedKey bytes: the hash of a key.
func xxh3(s string) uint64 {
	n := len(s)
	length := uint64(n)
	switch {
	case n > 16:
		h := length*prime1 + // mix16(s, 0, 0) + mix16(s, n-16, 2), without the calls
			fold(le64(s, 0)^secret[0], le64(s, 8)^secret[1]) +
			fold(le64(s, n-16)^secret[2], le64(s, n-8)^secret[3])
		for i := 1; n > 32*i; i++ {
			h += mix16(s, 16*i, 4*i) + mix16(s, n-16*i-16, 4*i+2)
		}
		return avalanche(h)
	case n > 8:
		low, high := le64(s, 0)^secret[3]^secret[4], le64(s, n-8)^secret[5]^secret[6]
		return avalanche(length + bits.ReverseBytes64(low) + high + fold(low, high))
	case n > 3:
		h := le32(s, n-4) + le32(s, 0)<<32 ^ secret[1] ^ secret[2]
		h = (h ^ bits.RotateLeft64(h, 49) ^ bits.RotateLeft64(h, 24)) * 0x9FB21C651E98DF25
		h = (h ^ (h>>35 + length)) * 0x9FB21C651E98DF25
		return h ^ h>>28
	}
	h := secret[7] ^ secret[8]
	if n > 0 {
		h = uint64(s[0])<<16 | uint64(s[n/2])<<24 | uint64(s[n-1]) | length<<8
		h ^= secret[0]&0xffffffff ^ secret[0]>>32
	}
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}
