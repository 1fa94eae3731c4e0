package pullet;

import java.nio.ByteBuffer;

/** XXH64 with seed 0: the digest of an image. */
final class Xxh64 {
    private static final long P1 = 0x9E3779B185EBCA87L;
    private static final long P2 = 0xC2B2AE3D27D4EB4FL;
    private static final long P3 = 0x165667B19E3779F9L;
    private static final long P4 = 0x85EBCA77C2B2AE63L;
    private static final long P5 = 0x27D4EB2F165667C5L;

    private Xxh64() {}

    private static long round(long acc, long input) {
        return Long.rotateLeft(acc + input * P2, 31) * P1;
    }

    private static long merge(long h, long acc) {
        return (h ^ round(0, acc)) * P1 + P4;
    }

    /** Over the bytes from `at` to the limit of a little-endian buffer. */
    static long of(ByteBuffer b, int at) {
        int end = b.limit();
        int length = end - at;
        long h = P5;
        if (length >= 32) {
            long a1 = P1 + P2;
            long a2 = P2;
            long a3 = 0;
            long a4 = -P1;
            for (; end - at >= 32; at += 32) {
                a1 = round(a1, b.getLong(at));
                a2 = round(a2, b.getLong(at + 8));
                a3 = round(a3, b.getLong(at + 16));
                a4 = round(a4, b.getLong(at + 24));
            }
            h = Long.rotateLeft(a1, 1) + Long.rotateLeft(a2, 7) + Long.rotateLeft(a3, 12)
                    + Long.rotateLeft(a4, 18);
            h = merge(merge(merge(merge(h, a1), a2), a3), a4);
        }
        h += length;
        for (; end - at >= 8; at += 8) {
            h = Long.rotateLeft(h ^ round(0, b.getLong(at)), 27) * P1 + P4;
        }
        if (end - at >= 4) {
            h = Long.rotateLeft(h ^ (b.getInt(at) & 0xffffffffL) * P1, 23) * P2 + P3;
            at += 4;
        }
        for (; at < end; at++) {
            h = Long.rotateLeft(h ^ (b.get(at) & 0xff) * P5, 11) * P1;
        }
        h = (h ^ h >>> 33) * P2;
        h = (h ^ h >>> 29) * P3;
        return h ^ h >>> 32;
    }
}
