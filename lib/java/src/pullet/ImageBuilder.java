package pullet;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/** Makes images, as the agent does: lib/FORMAT.md. A key that Xxh3 does not take is not in the index. */
final class ImageBuilder {
    private ImageBuilder() {}

    private static void pad(ByteArrayOutputStream out) {
        while (out.size() % 8 != 0) {
            out.write(0);
        }
    }

    static byte[] build(long generation, String version, Map<String, Value> entries) {
        Map<byte[], Value> sorted = new TreeMap<>(Arrays::compareUnsigned);
        entries.forEach((key, value) -> sorted.put(key.getBytes(StandardCharsets.UTF_8), value));
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
        for (Map.Entry<byte[], Value> e : sorted.entrySet()) {
            byte[] key = e.getKey();
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

    static ByteBuffer le(byte[] bytes) {
        return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
}
