package pullet;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.TreeMap;

/** Writes as the real agent does: rename, generation. (Nobody here sleeps on the futex.) */
final class Agent {
    final Path path;
    private final Path pagePath;
    private ByteBuffer page; // null without a page
    private long changes;

    Agent(Path directory) {
        path = directory.resolve("web.snap");
        pagePath = directory.resolve("web.gen");
    }

    private static void pad(ByteArrayOutputStream out) {
        while (out.size() % 8 != 0) {
            out.write(0);
        }
    }

    /** An image, as the agent makes it; a key that Xxh3 does not take is not in its index. */
    static byte[] build(long generation, String version, Map<String, Value> entries) {
        int slots = 2;
        while (slots < 2 * entries.size() || slots <= entries.size()) {
            slots *= 2;
        }
        int order = 64 + 8 * slots;
        int records = (order + 4 * entries.size() + 7) / 8 * 8;
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.writeBytes(new byte[records]);
        ByteBuffer list = le(new byte[4 * entries.size()]);
        ByteBuffer index = le(new byte[8 * slots]);
        for (Map.Entry<String, Value> e : new TreeMap<>(entries).entrySet()) {
            byte[] key = e.getKey().getBytes(StandardCharsets.UTF_8);
            byte[] text = e.getValue().text().getBytes(StandardCharsets.UTF_8);
            list.putInt(out.size());
            if (key.length <= Xxh3.MAX) {
                long hash = Xxh3.of(key);
                int slot = (int) hash & slots - 1;
                while (index.getLong(8 * slot) != 0) {
                    slot = slot + 1 & slots - 1;
                }
                index.putLong(8 * slot, hash >>> 32 | (long) out.size() << 32);
            }
            out.writeBytes(le(new byte[16]).putLong(e.getValue().raw()).putInt(text.length)
                    .putInt(key.length | e.getValue().type().ordinal() << 24).array());
            out.writeBytes(key);
            out.write(0);
            out.writeBytes(text);
            out.write(0);
            pad(out);
        }
        int versionAt = out.size();
        out.writeBytes(version.getBytes(StandardCharsets.UTF_8));
        out.write(0);
        pad(out);
        ByteBuffer b = le(out.toByteArray());
        b.put(64, index.array());
        b.put(order, list.array());
        b.putLong(0, 0x0150414E534C5550L).putLong(16, b.limit()).putLong(24, generation);
        b.putInt(40, entries.size()).putInt(44, slots).putInt(48, 64).putInt(52, order)
                .putInt(56, records).putInt(60, versionAt);
        b.putLong(8, Xxh64.of(b, 16));
        return b.array();
    }

    private static ByteBuffer le(byte[] bytes) {
        return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    static Value text(String text) {
        return new Value(Value.Type.STRING, text, 0);
    }

    void start() throws IOException {
        Files.write(pagePath, le(new byte[Page.SIZE]).putLong(Page.MAGIC).array());
        try (FileChannel f = FileChannel.open(pagePath, StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
            page = f.map(FileChannel.MapMode.READ_WRITE, 0, Page.SIZE);
        }
    }

    void store(int at, long n) {
        Page.LONGS.setRelease(page, at, n);
    }

    void write(byte[] image) throws IOException {
        Path temporary = path.resolveSibling("web.tmp");
        Files.write(temporary, image);
        Files.move(temporary, path, StandardCopyOption.ATOMIC_MOVE);
    }

    void announce(long generation) {
        if (page != null) {
            store(Page.GENERATION, generation);
            store(Page.FUTEX, ++changes); // not withdrawn, which is above it
        }
    }

    void withdraw() throws IOException {
        Files.delete(path);
        store(Page.FUTEX, changes | 1L << 32);
        store(Page.CONFIRMED, 0);
        store(Page.FUTEX, ++changes | 1L << 32);
    }

    void publish(long generation, String version, Map<String, Value> entries) throws IOException {
        write(build(generation, version, entries));
        announce(generation);
    }
}
