package pullet;

import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.Set;

/**
 * Counts the mappings that are of no use any more and that the garbage collector has not unmapped.
 * It knows nothing of their size: in a program that allocates little they stay for hours, in memory
 * that is the agent's if its directory is.
 */
final class Retired {
    private static final long MAX_BYTES = 32 << 20;
    private static final long PAGE = 4096;
    private static final Set<Mapping> MAPPINGS = new HashSet<>();
    private static final ReferenceQueue<ByteBuffer> UNMAPPED = new ReferenceQueue<>();
    private static long bytes;

    private Retired() {}

    private static final class Mapping extends PhantomReference<ByteBuffer> {
        final long size;

        Mapping(ByteBuffer data) {
            super(data, UNMAPPED);
            size = (data.limit() + PAGE - 1) / PAGE * PAGE;
        }
    }

    /** Lookups of other threads may still use it. */
    static synchronized void add(ByteBuffer data) {
        Mapping m = new Mapping(data);
        MAPPINGS.add(m);
        bytes += m.size;
    }

    /** Whether there are so many that another image is copied: heap is what the collector counts. */
    static synchronized boolean tooMany() {
        for (Object m = UNMAPPED.poll(); m != null; m = UNMAPPED.poll()) {
            MAPPINGS.remove(m);
            bytes -= ((Mapping) m).size;
        }
        return bytes > MAX_BYTES;
    }
}
