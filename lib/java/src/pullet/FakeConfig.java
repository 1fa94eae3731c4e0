package pullet;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A config in memory, for the tests of an application: no agent, no file. All that reads is the
 * config's own code; a test is the agent, and publishes, withdraws, damages.
 *
 * <pre>{@code
 * FakeConfig fake = FakeConfig.of(Map.of("db", Map.of("host", "a"), "timeout", Duration.ofSeconds(10)));
 * Service service = new Service(fake); // takes a Configuration
 * fake.set("db.host", "b"); // refresh, await and nextChange see it
 * }</pre>
 *
 * <p>A document is made of Map with String keys, Iterable and Object[], null, Boolean, numbers,
 * CharSequence, enums (their names) and Duration (a text such as 1500ms). What is published was
 * confirmed just now, and never becomes stale: see {@link #setAge}.
 */
public final class FakeConfig extends Config {
    private final Memory memory;

    private FakeConfig(Memory memory) throws IOException {
        super(Path.of("(fake)"), memory, false);
        this.memory = memory;
    }

    /**
     * Makes one.
     *
     * @param document its first version
     * @return it
     * @throws IllegalArgumentException when it cannot be a document
     */
    public static FakeConfig of(Map<String, ?> document) {
        Memory memory = new Memory();
        memory.publish(plain("", document));
        try {
            return new FakeConfig(memory);
        } catch (IOException e) {
            throw new IllegalStateException(e); // it is there
        }
    }

    /**
     * Replaces the document by a new version, which refresh, await and nextChange see.
     *
     * @param document the version
     * @throws IllegalArgumentException when it cannot be a document; nothing has changed
     */
    public void publish(Map<String, ?> document) {
        memory.publish(plain("", document));
    }

    /**
     * Publishes a version in which a key has another value. Maps on the way are made; a list is
     * replaced as a whole.
     *
     * @param key the key, as for get
     * @param value a scalar, list or map
     * @throws IllegalArgumentException when there is something else on the way; nothing has changed
     */
    public void set(String key, Object value) {
        synchronized (memory) {
            memory.publish(with(memory.document, Tree.segments(key), plain(key, value), key));
        }
    }

    /** Takes the config away, as an agent that has it no more, until the next version. */
    public void withdraw() {
        memory.withdraw();
    }

    /** Publishes what is no good: a refresh throws {@link DamagedException}. */
    public void damage() {
        memory.damage();
    }

    /**
     * Sets the time since the server confirmed the version, and from which age on it is stale; until
     * the next version.
     *
     * @param age the age
     * @param stale from when on it is stale; zero = never
     */
    public void setAge(Duration age, Duration stale) {
        memory.setAge(age.toMillis(), stale.toMillis());
    }

    private static Object plain(String key, Object v) {
        if (v instanceof Map<?, ?> map) {
            Map<String, Object> members = new TreeMap<>();
            map.forEach((name, member) -> {
                if (!(name instanceof String s)) {
                    throw new IllegalArgumentException(key + ": a key that is no String");
                }
                members.put(s, plain(key + "." + s, member));
            });
            return members;
        }
        if (v instanceof Object[] array) {
            return plain(key, Arrays.asList(array));
        }
        if (v instanceof Iterable<?> all) {
            List<Object> list = new ArrayList<>();
            all.forEach(item -> list.add(plain(key + "." + list.size(), item)));
            return list;
        }
        return scalar(key, v);
    }

    private static Value scalar(String key, Object v) {
        Value value;
        if (v == null) {
            return new Value(Value.Type.NULL, "", 0);
        } else if (v instanceof Boolean b) {
            return new Value(Value.Type.BOOL, v.toString(), b ? 1 : 0);
        } else if (v instanceof Long || v instanceof Integer || v instanceof Short || v instanceof Byte) {
            return new Value(Value.Type.INT, v.toString(), ((Number) v).longValue());
        } else if (v instanceof BigInteger n && n.bitLength() < 64) {
            return new Value(Value.Type.INT, v.toString(), n.longValue());
        } else if (v instanceof Double || v instanceof Float || v instanceof BigDecimal
                || v instanceof BigInteger) {
            double d = ((Number) v).doubleValue();
            String text = Double.isNaN(d) ? ".nan" : v instanceof BigDecimal || v instanceof BigInteger
                    || !Double.isInfinite(d) ? v.toString() : d > 0 ? ".inf" : "-.inf";
            return new Value(Value.Type.DOUBLE, text, Double.doubleToLongBits(d));
        } else if (v instanceof Duration d) {
            value = new Value(Value.Type.STRING, d.toMillis() + "ms", 0);
        } else if (v instanceof Enum<?> e) {
            value = new Value(Value.Type.STRING, e.name(), 0);
        } else if (v instanceof CharSequence) {
            value = new Value(Value.Type.STRING, v.toString(), 0);
        } else {
            throw new IllegalArgumentException(key + ": a fake takes no " + v.getClass().getName());
        }
        if (value.text().indexOf(0) >= 0) {
            throw new IllegalArgumentException(key + ": a text with a NUL");
        }
        return value;
    }

    private static Map<String, Object> with(Object tree, List<String> path, Object value, String key) {
        if (!(tree instanceof Map<?, ?> members)) {
            throw new IllegalArgumentException(key + ": above it is no map: set that as a whole");
        }
        Map<String, Object> changed = new TreeMap<>();
        members.forEach((name, member) -> changed.put((String) name, member));
        String first = path.get(0);
        changed.put(first, path.size() == 1 ? value : with(
                changed.getOrDefault(first, Map.of()), path.subList(1, path.size()), value, key));
        return changed;
    }

    private static void flatten(Map<String, Value> entries, String key, Object v) {
        if (v instanceof Map<?, ?> members) {
            entries.put(key, new Value(Value.Type.MAP, "", members.size()));
            members.forEach((name, m) -> flatten(entries, key + "." + Tree.escaped((String) name), m));
        } else if (v instanceof List<?> items) {
            entries.put(key, new Value(Value.Type.LIST, "", items.size()));
            for (int i = 0; i < items.size(); i++) {
                flatten(entries, key + "." + i, items.get(i));
            }
        } else {
            entries.put(key, (Value) v);
        }
    }

    /** The source of a fake. */
    private static final class Memory implements Source {
        private final Page page = Page.inMemory();
        private final Set<Runnable> hints = ConcurrentHashMap.newKeySet();
        private Object document;
        private byte[] image; // null = none
        private long generation;
        private int changes;

        synchronized void publish(Object tree) {
            Map<String, Value> entries = new HashMap<>();
            ((Map<?, ?>) tree).forEach(
                    (name, member) -> flatten(entries, Tree.escaped((String) name), member));
            document = tree;
            generation++;
            image = ImageBuilder.build(generation, "fake-" + generation, entries);
            setAge(0, 0);
            page.store(Page.GENERATION, generation);
            wake(0);
        }

        synchronized void withdraw() {
            image = null;
            page.store(Page.CONFIRMED, 0);
            wake(1L << 32);
        }

        synchronized void damage() {
            image = ImageBuilder.build(generation + 1, "", Map.of());
            image[8] ^= 1; // the digest
            wake(0);
        }

        void setAge(long age, long stale) {
            page.store(Page.STALE, stale);
            page.store(Page.CONFIRMED, Config.bootMillis() - age);
        }

        private void wake(long withdrawn) {
            page.store(Page.FUTEX, ++changes & 0xffffffffL | withdrawn);
            hints.forEach(Runnable::run);
        }

        @Override
        public synchronized Image load() throws IOException {
            if (image == null) {
                throw new NotPublishedException("(fake): nothing is published");
            }
            ByteBuffer b = ImageBuilder.le(image);
            return new Image(Path.of("(fake)"), b, image);
        }

        @Override
        public synchronized Object stamp() {
            return image;
        }

        @Override
        public Page pageAfter(Page have) {
            return page;
        }

        @Override
        public Hint hint(Runnable told) {
            hints.add(told);
            return new Hint() {
                @Override
                public boolean isWatching() {
                    return true;
                }

                @Override
                public void close() {
                    hints.remove(told);
                }
            };
        }
    }
}
