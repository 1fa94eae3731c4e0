package pullet;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;
import java.util.Objects;
import java.util.function.BiConsumer;

/**
 * One mapped generation (copied where too many old ones are still mapped): lib/FORMAT.md. Immutable,
 * and read with absolute accesses only, so that any number of threads may share it. The garbage
 * collector unmaps it after its last user.
 */
final class Image {
    private static final long MAGIC = 0x0150414E534C5550L; // "PULSNAP\x01"
    private static final int HEADER = 64;
    private static final int RECORD = 16;
    private static final int MAX_VERSION = 255;
    private static final int SHORT = 64; // bytes
    private static final int PART = 65536; // bytes
    private static final int COPIED = 16; // of so many parts of the heap an image may take one
    private static final long NOT_ASCII = 0x8080808080808080L;
    private static final Value.Type[] TYPES = Value.Type.values();

    /** Stands for an image where none is open. */
    static final Image NOTHING = new Image();

    private final ByteBuffer data;
    private final int slots;
    private final int slotMask;
    private final int order;
    private final int records;
    private final Object stamp;
    /** Tells this one from any other; whoever has it does not keep the mapping. */
    final Object identity = new Object();
    final long generation;
    final long digest; // tells images apart that have the same generation
    final String version;
    final int count;

    private Image() {
        data = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN); // an empty slot
        slots = 0;
        slotMask = 0;
        order = 0;
        records = 0;
        stamp = null;
        generation = 0;
        digest = 0;
        version = "";
        count = 0;
    }

    /** Checks all that a reader must check before it uses an image. */
    Image(Path path, ByteBuffer b, Object stamp) throws IOException {
        long size = b.limit();
        if (size < 8 ? size > 0 : b.getLong(0) != MAGIC) {
            throw new ForeignException(path + ": not a snapshot, or of another layout");
        }
        require(size >= HEADER, path, "it is cut short");
        require(b.getLong(16) == size, path, "its length is not what it says");
        require(b.getLong(8) == Xxh64.of(b, 16), path, "its digest is wrong");
        long keys = u32(b, 40);
        long slotCount = u32(b, 44);
        generation = b.getLong(24);
        require(generation != 0, path, "it has no generation");
        require(slotCount >= 2 && Long.bitCount(slotCount) == 1 && slotCount > keys, path,
                "its number of slots is wrong");
        require(fits(u32(b, 48), 8 * slotCount, 64, size), path, "its index lies outside");
        require(fits(u32(b, 52), 4 * keys, 8, size), path, "its sorted list lies outside");
        require(fits(u32(b, 56), RECORD * keys, 8, size), path, "its records lie outside");
        require(fits(u32(b, 60), 1, 1, size), path, "its version lies outside");
        data = b;
        this.stamp = stamp;
        digest = b.getLong(8);
        count = (int) keys;
        slots = b.getInt(48);
        slotMask = (int) slotCount - 1;
        order = b.getInt(52);
        records = b.getInt(56);
        int from = b.getInt(60);
        int end = from;
        while (end < size && end - from <= MAX_VERSION && b.get(end) != 0) {
            end++;
        }
        require(end < size && b.get(end) == 0, path, "its version has no end");
        version = text(from, end - from);
    }

    private static void require(boolean good, Path path, String what) throws DamagedException {
        if (!good) {
            throw new DamagedException(path + ": the snapshot is damaged: " + what);
        }
    }

    private static long u32(ByteBuffer b, int at) {
        return b.getInt(at) & 0xffffffffL;
    }

    private static boolean fits(long at, long length, int align, long size) {
        return at >= HEADER && at % align == 0 && at + length <= size;
    }

    /** What tells one file at a path from the next; taken before the file is opened. */
    static Object stampOf(Path path) throws IOException {
        try {
            BasicFileAttributes a = Files.readAttributes(path, BasicFileAttributes.class);
            if (!a.isRegularFile()) {
                throw new ForeignException(path + ": not a regular file");
            }
            return List.of(String.valueOf(a.fileKey()), a.size(), a.lastModifiedTime());
        } catch (NoSuchFileException e) {
            throw notPublished(path);
        }
    }

    private static NotPublishedException notPublished(Path path) {
        return new NotPublishedException(path + ": nothing is published under this name yet");
    }

    static Image load(Path path) throws IOException {
        Object stamp = stampOf(path);
        try (FileChannel f = FileChannel.open(path, StandardOpenOption.READ)) {
            if (f.size() > Integer.MAX_VALUE) {
                throw new IOException(path + ": larger than the 2 GiB that Java can map");
            }
            ByteBuffer b = Retired.tooMany() && f.size() <= Runtime.getRuntime().maxMemory() / COPIED
                    ? read(f) : f.map(FileChannel.MapMode.READ_ONLY, 0, f.size());
            return new Image(path, b.order(ByteOrder.LITTLE_ENDIAN), stamp);
        } catch (NoSuchFileException e) {
            throw notPublished(path);
        }
    }

    /** In parts: the channel keeps a buffer of the size that it is asked for. */
    private static ByteBuffer read(FileChannel f) throws IOException {
        ByteBuffer b = ByteBuffer.allocate((int) f.size());
        do {
            b.limit(Math.min(b.capacity(), b.position() + PART));
        } while (b.hasRemaining() && f.read(b) > 0);
        return b.flip();
    }

    /** It was replaced, or closed. */
    void retire() {
        if (data.isDirect()) {
            Retired.add(data);
        }
    }

    boolean isAt(Object otherStamp) {
        return Objects.equals(stamp, otherStamp);
    }

    /** What is short is copied by eights, and decoded only if it is more than ASCII. */
    private String text(int at, int length) {
        byte[] bytes = new byte[length];
        if (length > SHORT) {
            data.get(at, bytes);
            return new String(bytes, StandardCharsets.UTF_8);
        }
        long bits = 0;
        int i = 0;
        for (; i + 8 <= length; i += 8) {
            long eight = data.getLong(at + i);
            Xxh3.put(bytes, i, eight);
            bits |= eight;
        }
        for (; i < length; i++) {
            bytes[i] = data.get(at + i);
            bits |= bytes[i];
        }
        return new String(bytes, (bits & NOT_ASCII) == 0
                ? StandardCharsets.ISO_8859_1 : StandardCharsets.UTF_8);
    }

    /** The offset of the record at a place, or -1 when it or its key is not good. */
    private int record(int place) {
        return checked(u32(data, order + 4 * place));
    }

    /** An offset, or -1 as above. */
    private int checked(long at) {
        if (at < records || at % 8 != 0 || at + RECORD > data.limit()) {
            return -1;
        }
        long end = at + RECORD + (data.getInt((int) at + 12) & 0xffffff);
        return end < data.limit() && data.get((int) end) == 0 ? (int) at : -1;
    }

    private int keyLength(int record) {
        return data.getInt(record + 12) & 0xffffff;
    }

    /** As memcmp, a shorter key before a longer one that it begins. */
    private int compareKey(int record, byte[] key) {
        int length = keyLength(record);
        int common = Math.min(length, key.length);
        for (int i = 0; i < common; i++) {
            int difference = (data.get(record + RECORD + i) & 0xff) - (key[i] & 0xff);
            if (difference != 0) {
                return difference;
            }
        }
        return length - key.length;
    }

    /** Whether there is a good record at an offset, with a key of this length. */
    private boolean isGood(long at, int length) {
        if (at < records || at % 8 != 0 || at + RECORD > data.limit()) {
            return false;
        }
        long lengths = data.getLong((int) at + 8);
        long keyEnd = at + RECORD + length;
        long textEnd = keyEnd + 1 + (lengths & 0xffffffffL);
        int type = (int) (lengths >> 56);
        return (int) (lengths >> 32 & 0xffffff) == length && textEnd < data.limit()
                && (data.get((int) keyEnd) | data.get((int) textEnd)) == 0
                && type >= 0 && type < TYPES.length;
    }

    private boolean isGood(int record) {
        return isGood(record, keyLength(record));
    }

    /** The type of the value of a good record. */
    Value.Type type(int record) {
        return TYPES[data.get(record + 15)];
    }

    /** The 64 bits of the value of a good record. */
    long raw(int record) {
        return data.getLong(record);
    }

    /** The text of a good record. */
    String text(int record) {
        long lengths = data.getLong(record + 8);
        return text(record + RECORD + (int) (lengths >> 32 & 0xffffff) + 1, (int) lengths);
    }

    /** The value of a good record, or of -1: null. */
    Value value(int record) {
        return record < 0 ? null : new Value(type(record), text(record), raw(record));
    }

    /** The first place whose key is not before `key`; where a bad record stands, none after it. */
    private int lowerBound(byte[] key) {
        int low = 0;
        int high = count;
        while (low < high) {
            int mid = (low + high) >>> 1;
            int record = record(mid);
            if (record < 0) {
                return low; // no direction: the caller goes on from here
            }
            if (compareKey(record, key) < 0) {
                low = mid + 1;
            } else {
                high = mid;
            }
        }
        return low;
    }

    /** A key's good record, or -1: by its hash; a long key, which Xxh3 does not take, by bisection. */
    int find(String key) {
        byte[] wanted = key.getBytes(StandardCharsets.UTF_8);
        if (wanted.length > Xxh3.MAX) {
            return bisect(wanted);
        }
        long hash = Xxh3.of(wanted);
        int slot = (int) hash;
        for (int n = 0; n <= slotMask; n++, slot++) {
            long entry = data.getLong(slots + 8 * (slot & slotMask));
            if (entry >>> 32 == 0) {
                return -1;
            }
            if ((int) entry == (int) (hash >>> 32)) {
                long at = entry >>> 32;
                if (isGood(at, wanted.length) && isKey((int) at, wanted)) {
                    return (int) at;
                }
            }
        }
        return -1;
    }

    /** Of a record with a key of that length. */
    private boolean isKey(int record, byte[] key) {
        int at = record + RECORD;
        int i = 0;
        for (; i + 8 <= key.length; i += 8) {
            if (data.getLong(at + i) != Xxh3.u64(key, i)) {
                return false;
            }
        }
        for (; i < key.length; i++) {
            if (data.get(at + i) != key[i]) {
                return false;
            }
        }
        return true;
    }

    private int bisect(byte[] wanted) {
        for (int i = lowerBound(wanted); i < count; i++) {
            int record = record(i);
            int order = record < 0 ? -1 : compareKey(record, wanted);
            if (order >= 0) {
                return order == 0 && isGood(record) ? record : -1;
            }
        }
        return -1;
    }

    /** Calls for each good record whose key begins with a prefix, in order. */
    void each(String prefix, BiConsumer<String, Value> action) {
        byte[] first = prefix.getBytes(StandardCharsets.UTF_8);
        for (int i = lowerBound(first); i < count; i++) {
            int record = record(i);
            if (record < 0 || compareKey(record, first) < 0) {
                continue;
            }
            if (!begins(record, first)) {
                return;
            }
            if (isGood(record)) {
                action.accept(text(record + RECORD, keyLength(record)), value(record));
            }
        }
    }

    private boolean begins(int record, byte[] prefix) {
        for (int i = 0; i < prefix.length; i++) {
            if (i >= keyLength(record) || data.get(record + RECORD + i) != prefix[i]) {
                return false;
            }
        }
        return true;
    }
}
