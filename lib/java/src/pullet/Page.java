package pullet;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;

/** The mapped control page: lib/FORMAT.md. */
final class Page {
    static final int SIZE = 4096;
    static final long MAGIC = 0x01504E45474C5550L; // "PULGENP\x01"
    static final int GENERATION = 8;
    static final int FUTEX = 16;
    static final int CONFIRMED = 24;
    static final int STALE = 32;
    static final VarHandle LONGS =
            MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final ByteBuffer data;
    private final Object file;

    private Page(ByteBuffer data, Object file) {
        this.data = data;
        this.file = file;
    }

    /** Device and inode; null when there is no file, or it cannot be told. */
    private static Object fileAt(Path path) {
        try {
            return Files.readAttributes(path, BasicFileAttributes.class).fileKey();
        } catch (IOException e) {
            return null;
        }
    }

    /** Whether this is the page at the path, or nothing is. */
    boolean isAt(Path path) {
        Object there = fileAt(path);
        return there == null || there.equals(file);
    }

    /** Null when there is none, it is being made, or it is something else: the page is optional. */
    static Page open(Path path) {
        if (!Files.isRegularFile(path)) {
            return null;
        }
        Object file = fileAt(path); // replaced meanwhile: it is opened again the next time
        try (FileChannel f = FileChannel.open(path, StandardOpenOption.READ)) {
            if (f.size() != SIZE) {
                return null;
            }
            Page page = new Page(f.map(FileChannel.MapMode.READ_ONLY, 0, SIZE), file);
            return page.load(0) == MAGIC ? page : null;
        } catch (IOException e) {
            return null;
        }
    }

    /** One of this process alone: a fake's. */
    static Page inMemory() {
        ByteBuffer data = ByteBuffer.allocateDirect(SIZE + 8).alignedSlice(8); // for atomic accesses
        LONGS.set(data, 0, MAGIC);
        return new Page(data, null);
    }

    /** In a page in memory. */
    void store(int at, long n) {
        LONGS.setRelease(data, at, n);
    }

    private long load(int at) {
        return (long) LONGS.getAcquire(data, at);
    }

    long generation() {
        return load(GENERATION);
    }

    /** The futex word; the one after it is withdrawn, which is written before. */
    long futex() {
        return load(FUTEX) & 0xffffffffL;
    }

    /** The image is gone, on purpose. */
    boolean withdrawn() {
        return load(FUTEX) >>> 32 != 0;
    }

    long confirmedMillis() {
        return load(CONFIRMED);
    }

    long staleMillis() {
        return load(STALE);
    }
}
