package pullet;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Map;

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

    static byte[] build(long generation, String version, Map<String, Value> entries) {
        return ImageBuilder.build(generation, version, entries);
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
