package pullet;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** XXH3 of 64 bits with seed 0, the short forms only: the hash of a key. */
final class Xxh3 {
    /** The longest key it takes. */
    static final int MAX = 128;

    private static final VarHandle LONGS =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle INTS =
            MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final long P1 = 0x9E3779B185EBCA87L;
    private static final long P2 = 0xC2B2AE3D27D4EB4FL;
    private static final long P3 = 0x165667B19E3779F9L;
    private static final long MIX = 0x165667919E3779F9L;
    private static final long RRMXMX = 0x9FB21C651E98DF25L;
    /** The beginning of the secret that XXH3 uses when it is given none. */
    private static final long[] SECRET = {
        0xBE4BA423396CFEB8L, 0x1CAD21F72C81017CL, 0xDB979083E96DD4DEL, 0x1F67B3B7A4A44072L,
        0x78E5C0CC4EE679CBL, 0x2172FFCC7DD05A82L, 0x8E2443F7744608B8L, 0x4C263A81E69035E0L,
        0xCB00C391BB52283CL, 0xA32E531B8B65D088L, 0x4EF90DA297486471L, 0xD8ACDEA946EF1938L,
        0x3F349CE33F76FAA8L, 0x1D4F0BC7C7BBDCF9L, 0x3159B4CD4BE0518AL, 0x647378D9C97E9FC8L,
    };

    private Xxh3() {}

    static long u64(byte[] b, int at) {
        return (long) LONGS.get(b, at);
    }

    static void put(byte[] b, int at, long n) {
        LONGS.set(b, at, n);
    }

    private static long u32(byte[] b, int at) {
        return (int) INTS.get(b, at) & 0xffffffffL;
    }

    /** The 128 bits of a product, its halves on each other. */
    private static long fold(long a, long b) {
        return a * b ^ Math.multiplyHigh(a, b) + (a >> 63 & b) + (b >> 63 & a);
    }

    private static long mix16(byte[] b, int at, int word) {
        return fold(u64(b, at) ^ SECRET[word], u64(b, at + 8) ^ SECRET[word + 1]);
    }

    private static long avalanche(long h) {
        h = (h ^ h >>> 37) * MIX;
        return h ^ h >>> 32;
    }

    /** Over at most MAX bytes. */
    static long of(byte[] b) {
        int n = b.length;
        long h;
        if (n > 16) {
            h = n * P1 + mix16(b, 0, 0) + mix16(b, n - 16, 2);
            for (int i = 1; n > 32 * i; i++) {
                h += mix16(b, 16 * i, 4 * i) + mix16(b, n - 16 * i - 16, 4 * i + 2);
            }
            return avalanche(h);
        }
        if (n > 8) {
            long low = u64(b, 0) ^ SECRET[3] ^ SECRET[4];
            long high = u64(b, n - 8) ^ SECRET[5] ^ SECRET[6];
            return avalanche(n + Long.reverseBytes(low) + high + fold(low, high));
        }
        if (n > 3) {
            h = u32(b, n - 4) + (u32(b, 0) << 32) ^ SECRET[1] ^ SECRET[2];
            h = (h ^ Long.rotateLeft(h, 49) ^ Long.rotateLeft(h, 24)) * RRMXMX;
            h = (h ^ (h >>> 35) + n) * RRMXMX;
            return h ^ h >>> 28;
        }
        h = SECRET[7] ^ SECRET[8];
        if (n > 0) {
            h = (b[0] & 0xffL) << 16 | (b[n / 2] & 0xffL) << 24 | b[n - 1] & 0xffL | (long) n << 8;
            h ^= (SECRET[0] ^ SECRET[0] >>> 32) & 0xffffffffL;
        }
        h = (h ^ h >>> 33) * P2;
        h = (h ^ h >>> 29) * P3;
        return h ^ h >>> 32;
    }
}
