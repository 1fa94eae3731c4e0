package pullet;

import java.io.IOException;
import java.net.URLDecoder;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Stream;

/** Tests without a framework: the argument is the directory of the golden files. */
final class ConfigTest {
    private static int passed;
    private static int failed;
    private static Path golden;

    private ConfigTest() {}

    interface Body {
        void run(Agent agent) throws Exception;
    }

    static void test(String name, Body body) throws IOException {
        Path directory = Files.createTempDirectory("pullet-test");
        try {
            body.run(new Agent(directory));
            passed++;
        } catch (Exception | AssertionError e) {
            failed++;
            System.out.println("  FAIL " + name);
            e.printStackTrace(System.out);
        } finally {
            try (Stream<Path> all = Files.walk(directory)) {
                for (Path p : all.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(p);
                }
            }
        }
    }

    static void end() {
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }

    static void same(Object want, Object got, String what) {
        if (!Objects.equals(want, got)) {
            throw new AssertionError(what + ": " + got + ", want " + want);
        }
    }

    interface Action {
        Object run() throws Exception;
    }

    static void fails(Class<?> want, Action action, String what) {
        try {
            action.run();
        } catch (Exception e) {
            if (!want.isInstance(e)) {
                throw new AssertionError(what, e);
            }
            return;
        }
        throw new AssertionError(what + ": no " + want);
    }

    private static void xxh64(Agent unused) {
        Map<String, Long> vectors = Map.of("", 0xef46db3751d8e999L, "a", 0xd24ec4f1a98c6e5bL,
                "as", 0x1c330fb2d66be179L, "asd", 0x631c37ce72a97393L, "abc", 0x44bc2cf5ad770999L,
                "Nobody inspects the spammish repetition", 0xfbcea83c8a378bf1L,
                "Call me Ishmael. Some years ago--never mind how long precisely-",
                0x02a2e85470d6fd96L);
        vectors.forEach((text, want) -> {
            ByteBuffer b = ByteBuffer.wrap(("xx" + text).getBytes(StandardCharsets.US_ASCII));
            same(want, Xxh64.of(b.order(ByteOrder.LITTLE_ENDIAN), 2), text);
        });
    }

    /** All lengths, of a text that xxHash's own library was given as well. */
    private static void xxh3(Agent unused) {
        long sum = 0;
        for (int n = 0; n <= Xxh3.MAX; n++) {
            byte[] b = new byte[n];
            for (int i = 0; i < n; i++) {
                b[i] = (byte) (i * 37 + 11);
            }
            sum = sum * 31 + Xxh3.of(b);
        }
        same(0x43eeb05fe74378dcL, sum, "sum");
    }

    private static void longKeys(Agent a) throws IOException {
        Map<String, Value> m = new HashMap<>();
        for (int n = Xxh3.MAX - 2; n < Xxh3.MAX + 20; n++) {
            m.put("k".repeat(n), Agent.text(String.valueOf(n)));
        }
        a.publish(1, "v", m);
        try (Config c = Config.open(a.path)) {
            m.forEach((key, value) -> same(value.text(), c.getString(key, ""), key));
            for (int n = 0; n < 2 * Xxh3.MAX; n++) {
                same(true, c.get("k".repeat(n) + "l").isEmpty(), "absent " + n);
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> json(String name) throws IOException {
        return (Map<String, Object>) Json.parse(Files.readString(golden.resolve(name)));
    }

    private static String shown(Value v) {
        return switch (v.type()) {
            case BOOL -> String.valueOf(v.asBoolean());
            case INT -> String.valueOf(v.asLong());
            case DOUBLE -> String.valueOf(Double.doubleToLongBits(v.asDouble()));
            case LIST, MAP -> String.valueOf(v.count());
            default -> "";
        };
    }

    private static String wanted(String type, String value) {
        if (!type.equals("double")) {
            return value;
        }
        double d = switch (value) {
            case "inf" -> Double.POSITIVE_INFINITY;
            case "-inf" -> Double.NEGATIVE_INFINITY;
            case "nan" -> Double.NaN;
            default -> Double.parseDouble(value);
        };
        return String.valueOf(Double.doubleToLongBits(d));
    }

    private static void golden(String name) throws IOException {
        Map<String, Object> want = json(name + ".json");
        try (Config c = Config.open(golden.resolve(name + ".snap"))) {
            same(want.get("generation"), c.generation(), "generation");
            same(want.get("version"), c.version(), "version");
            List<String> keys = new ArrayList<>();
            for (Object row : (List<?>) want.get("keys")) {
                List<?> k = (List<?>) row;
                Value v = c.get((String) k.get(0)).orElseThrow(() -> new AssertionError(k));
                same(k.get(1), v.type().name().toLowerCase(), "type of " + k);
                same(k.get(2), v.text(), "text of " + k);
                same(wanted((String) k.get(1), (String) k.get(3)), shown(v), "value of " + k);
                keys.add((String) k.get(0));
            }
            for (Object key : (List<?>) want.get("absent")) {
                same(true, c.get((String) key).isEmpty(), "absent " + key);
            }
            List<String> listed = new ArrayList<>();
            c.forEach("", (key, value) -> listed.add(key));
            same(keys, listed, "list");
            same(keys.size(), c.entries("").size(), "entries");
            same(keys.size(), c.count(), "count");
        }
    }

    private interface Getter<T> {
        T get(T fallback);
    }

    /** A getter answers as the table says: "-" is the fallback, whatever that is. */
    private static <T> void answers(String row, String want, List<T> fallbacks, Function<String, T> convert,
            Getter<T> getter) {
        for (T fallback : fallbacks) {
            same(want.equals("-") ? fallback : convert.apply(want), getter.get(fallback), row);
        }
    }

    /** A table of values with its image: stem.tsv and stem.snap. */
    private static void values(String stem) throws IOException {
        int rows = 0;
        try (Config c = Config.open(Path.of(stem + ".snap"))) {
            for (String row : Files.readAllLines(Path.of(stem + ".tsv"))) {
                if (row.startsWith("#")) {
                    continue;
                }
                rows++;
                String[] col = row.split("\t", -1);
                String key = col[0];
                String text = URLDecoder.decode(col[2].replace("+", "%2B"), StandardCharsets.UTF_8);
                boolean scalar = List.of("bool", "int", "double", "string").contains(col[1]);
                same(scalar ? text : "another", c.getString(key, "another"), row);
                answers(row, col[3], List.of(5L, 6L), Long::valueOf, f -> c.getLong(key, f));
                if (col[3].equals("-") || Long.parseLong(col[3]) == (int) Long.parseLong(col[3])) {
                    answers(row, col[3], List.of(5, 6), Integer::valueOf, f -> c.getInt(key, f));
                } else {
                    answers(row, "-", List.of(5, 6), Integer::valueOf, f -> c.getInt(key, f));
                }
                answers(row, col[4], List.of(5.5, 6.5), n -> Double.longBitsToDouble(
                        Long.parseLong(wanted("double", n))), f -> c.getDouble(key, f));
                answers(row, col[5], List.of(true, false), Boolean::valueOf, f -> c.getBoolean(key, f));
                answers(row, col[6], List.of(Duration.ZERO, Duration.ofDays(1)),
                        ms -> Duration.ofMillis(Long.parseLong(ms)), f -> c.getDuration(key, f));
                answers(row, col[7], List.of(5L, 6L), Long::valueOf, f -> c.getSize(key, f));
                Key named = c.key(key);
                same(c.getString(key, "x") + c.getLong(key, 5) + c.getInt(key, 5) + c.getDouble(key, 5)
                        + c.getBoolean(key, true) + c.getBoolean(key, false)
                        + c.getDuration(key, Duration.ZERO) + c.getSize(key, 5) + c.get(key),
                        named.getString("x") + named.getLong(5) + named.getInt(5) + named.getDouble(5)
                        + named.getBoolean(true) + named.getBoolean(false)
                        + named.getDuration(Duration.ZERO) + named.getSize(5) + named.get(), row);
            }
            same(c.count() + 1, rows, "rows"); // one is absent
        }
    }

    private static void goldenPage(Agent unused) throws IOException {
        Map<String, Object> want = json("types.gen.json");
        Page p = Page.open(golden.resolve("types.gen"));
        same(want.get("generation"), p.generation(), "generation");
        same(want.get("futex"), p.futex(), "futex");
        same(want.get("confirmed_ms"), p.confirmedMillis(), "confirmed");
        same(want.get("stale_ms"), p.staleMillis(), "stale");
    }

    private static void bad(Agent a, String name, Map<?, ?> want) throws IOException {
        a.publish(1, "before", Map.of("key", Agent.text("kept")));
        try (Config c = Config.open(a.path)) {
            a.write(Files.readAllBytes(golden.resolve("bad/" + name + ".snap")));
            if (!want.containsKey("keys")) {
                Object error = want.get("error");
                Class<?> kind = error == null ? IOException.class
                        : error.equals("EPROTO") ? ForeignException.class : DamagedException.class;
                fails(kind, c::refresh, name);
                same("kept", c.getString("key", ""), "the version before");
                return;
            }
            same(true, c.refresh(), "moved");
            Map<String, Value> listed = c.entries("");
            for (Object key : (List<?>) want.get("keys")) {
                same(true, c.get((String) key).isEmpty(), "found " + key);
                same(false, listed.containsKey(key), "listed " + key);
            }
            for (Object row : (List<?>) want.get("good")) {
                String key = (String) ((List<?>) row).get(0);
                Object text = ((List<?>) row).get(1);
                same(text, c.getString(key, null), key);
                same(text, listed.get(key).text(), key);
                same(text, c.entries(key).get(key).text(), key);
            }
        }
    }

    private static void flips(Agent a) throws IOException {
        byte[] whole = Agent.build(7, "v7", Map.of("a", Agent.text("1"), "b", Agent.text("2")));
        for (int i = 0; i < whole.length; i++) {
            byte[] b = whole.clone();
            b[i] ^= 0x10;
            a.write(b);
            fails(i < 8 ? ForeignException.class : DamagedException.class,
                    () -> Config.open(a.path), "byte " + i);
            a.write(java.util.Arrays.copyOf(whole, i));
            fails(IOException.class, () -> Config.open(a.path), "cut to " + i);
        }
    }

    /** Whatever an image holds behind a right digest, it is refused as damaged or read without harm. */
    private static void random(Agent a) throws IOException {
        Random r = new Random(1);
        int[] words = {0, 1, 7, 64, 128, 1 << 24, 1 << 31, -8, -1};
        byte[] seed = Agent.build(7, "v7", Map.of("a", Agent.text("1"), "b", Agent.text("2"), "c",
                new Value(Value.Type.INT, "3", 3), "d", Agent.text("4")));
        int good = 0;
        for (int i = 0; i < 200_000; i++) {
            ByteBuffer b = ByteBuffer.wrap(seed.clone()).order(ByteOrder.LITTLE_ENDIAN);
            for (int n = 1 + r.nextInt(3); n > 0; n--) {
                int at = 24 + r.nextInt(seed.length - 27);
                if (r.nextBoolean()) {
                    b.put(at, (byte) r.nextInt());
                } else {
                    b.putInt(at & ~3, words[r.nextInt(words.length)]);
                }
            }
            b.putLong(8, Xxh64.of(b, 16));
            try {
                Image image = new Image(a.path, b, null);
                image.each("", (key, value) -> image.value(image.find(key)));
                image.each("b", (key, value) -> { });
                image.value(image.find("b"));
                image.value(image.find("b".repeat(Xxh3.MAX + 1)));
                good++;
            } catch (DamagedException e) {
                sink = e;
            }
        }
        same(true, good > 10_000 && good < 190_000, "accepted " + good);
    }

    private static void typed(Agent a) throws IOException {
        Map<String, Value> m = new HashMap<>();
        m.put("int", new Value(Value.Type.INT, "0x1F", 31));
        m.put("big", new Value(Value.Type.INT, "1e", 1L << 40));
        m.put("half", new Value(Value.Type.DOUBLE, "5e-1", Double.doubleToLongBits(0.5)));
        m.put("yes", new Value(Value.Type.BOOL, "true", 1));
        m.put("null", new Value(Value.Type.NULL, "", 0));
        m.put("list", new Value(Value.Type.LIST, "", 2));
        String[] texts = {"t.int", "42", "t.space", " 42", "t.arabic", "\u0664\u0662", "t.float",
            "0.5", "t.inf", "inf", "t.hex", "0x10", "t.suffix", "1d", "t.huge", "1e999", "t.bool",
            "false", "t.Bool", "True", "d.ms", "500ms", "d.d", "2d", "d.bad", "5", "d.two", "1h5m",
            "d.huge", "9999999999999d", "s.kib", "64KiB", "s.kb", "1kB", "s.huge", "9999999999TiB"};
        for (int i = 0; i < texts.length; i += 2) {
            m.put(texts[i], Agent.text(texts[i + 1]));
        }
        a.publish(1, "v", m);
        try (Config c = Config.open(a.path.toString())) {
            Object[][] table = {
                {"0x1F", c.getString("int", "x")}, {"true", c.getString("yes", "x")},
                {"x", c.getString("null", "x")}, {"x", c.getString("list", "x")},
                {"x", c.getString("none", "x")}, {31, c.getInt("int", 5)}, {5, c.getInt("big", 5)},
                {1L << 40, c.getLong("big", 5)}, {42L, c.getLong("t.int", 5)},
                {5L, c.getLong("t.space", 5)}, {5L, c.getLong("t.arabic", 5)},
                {5L, c.getLong("half", 5)}, {0.5, c.getDouble("half", 2)},
                {31.0, c.getDouble("int", 2)}, {0.5, c.getDouble("t.float", 2)},
                {2.0, c.getDouble("t.inf", 2)}, {2.0, c.getDouble("t.hex", 2)},
                {2.0, c.getDouble("t.suffix", 2)}, {2.0, c.getDouble("t.huge", 2)},
                {2.0, c.getDouble("yes", 2)}, {true, c.getBoolean("yes", false)},
                {false, c.getBoolean("t.bool", true)}, {false, c.getBoolean("t.Bool", false)},
                {true, c.getBoolean("t.Bool", true)}, {true, c.getBoolean("int", true)},
                {Duration.ofMillis(500), c.getDuration("d.ms", null)},
                {Duration.ofDays(2), c.getDuration("d.d", null)},
                {null, c.getDuration("d.bad", null)}, {Duration.ofMinutes(65), c.getDuration("d.two", null)},
                {null, c.getDuration("d.huge", null)}, {null, c.getDuration("int", null)},
                {65536L, c.getSize("s.kib", 7)}, {31L, c.getSize("int", 7)},
                {42L, c.getSize("t.int", 7)}, {7L, c.getSize("s.kb", 7)},
                {7L, c.getSize("s.huge", 7)}, {2L, c.get("list").get().count()},
                {"[t.hex, t.huge]", c.entries("t.h").keySet().toString()},
                {"[]", c.entries("zzz").keySet().toString()},
            };
            for (int i = 0; i < table.length; i++) {
                same(table[i][0], table[i][1], "row " + i);
            }
        }
    }

    private static void errors(Agent a) throws IOException {
        for (String name : List.of("", ".web", "we b", "x".repeat(65))) {
            fails(IllegalArgumentException.class, () -> Config.open(name), name);
        }
        fails(NotPublishedException.class, () -> Config.open(a.path), "none");
        fails(NotPublishedException.class, () -> Config.open("surely-not-published"), "none");
        fails(ForeignException.class, () -> Config.open("/dev/null"), "/dev/null");
        a.publish(1, "v", Map.of());
        Path directory = a.path.getParent();
        for (Map.Entry<String, String> e : Map.of("wbe", "did you mean 'web'?", "none", "(there is web)",
                "we", "(there is web)").entrySet()) {
            String said = Explain.notPublished(directory.resolve(e.getKey() + ".snap")).getMessage();
            same(true, said.endsWith(e.getValue()), said);
        }
        String missing = Explain.notPublished(directory.resolve("none/web.snap")).getMessage();
        same(true, missing.contains("there is no directory " + directory.resolve("none")), missing);
        String odd = Explain.notPublished(Path.of("/dev/null/web.snap")).getMessage();
        same(true, odd.endsWith("NotDirectoryException: /dev/null"), odd);
        String denied = Explain.denied(directory.resolve("none/web.snap")).getReason();
        same(true, denied.startsWith(directory + " may be read by "), denied);
        Set<PosixFilePermission> closed = Files.getPosixFilePermissions(directory);
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwx------"));
        denied = Explain.denied(directory.resolve("none/web.snap")).getReason();
        same(directory + " may be read by root and the agent's user only", denied, "no group");
        Files.setPosixFilePermissions(directory, closed);
        Config c = Config.open(a.path);
        same("v", c.version(), "version");
        c.close();
        c.close();
        same("", c.version(), "closed");
        fails(IllegalStateException.class, c::refresh, "closed");
    }

    private static void key(Agent a) throws IOException {
        a.start();
        Config c = Config.openWaiting(a.path);
        Key k = c.key("k");
        same("x k", k.getString("x") + " " + k.name(), "nothing");
        for (int i = 1; i < 4; i++) {
            String before = k.getString("x");
            a.publish(i, "v", i == 2 ? Map.of() : Map.of("k", Agent.text(String.valueOf(i))));
            same(before, k.getString("x"), "not before a refresh");
            same(true, c.refresh(), "moved");
            for (int n = 0; n < 2; n++) { // the second time it is known
                same(i == 2 ? "x" : String.valueOf(i), k.getString("x"), "text " + i);
                same(i == 2 ? 5L : i, k.getLong(5), "number " + i);
                same(i != 2, k.get().isPresent(), "present " + i);
            }
        }
        c.close();
        same("x", k.getString("x"), "closed");
        try {
            c.key(null);
            same("an exception", "none", "a key that is null");
        } catch (NullPointerException e) {
            same(true, true, "refused");
        }
    }

    /** What is not ASCII, at each place of a text: it is looked at by eights. */
    private static void texts(Agent a) throws IOException {
        Map<String, Value> m = new HashMap<>();
        for (int length = 0; length < 80; length++) {
            for (int at = 0; at < length; at++) {
                m.put(length + "." + at, Agent.text("a".repeat(at) + "\u00e4\u4e2d" + "b".repeat(length - at - 1)));
            }
            m.put("ascii." + length, Agent.text("c".repeat(length)));
        }
        a.publish(1, "v", m);
        try (Config c = Config.open(a.path)) {
            m.forEach((key, value) -> same(value.text(), c.getString(key, "none"), key));
        }
    }

    private static void refresh(Agent a, boolean page) throws IOException {
        if (page) {
            a.start();
        }
        try (Config c = Config.openWaiting(a.path)) {
            same(false, c.refresh(), "moved to nothing");
            same(0L, c.generation(), "generation of nothing");
            same("x", c.getString("k", "x"), "value of nothing");
            a.publish(1, "one", Map.of("k", Agent.text("1")));
            same(true, c.refresh(), "moved to one");
            same(false, c.refresh(), "moved to one again");
            a.publish(2, "two", Map.of("k", Agent.text("2")));
            same("1", c.getString("k", ""), "before");
            same(true, c.refresh(), "moved to two");
            same("2 two", c.getString("k", "") + " " + c.version(), "after");
            byte[] damaged = Agent.build(3, "three", Map.of());
            damaged[40] ^= 1;
            a.write(damaged);
            a.announce(3);
            fails(DamagedException.class, c::refresh, "damaged");
            same("2", c.getString("k", ""), "after the damaged one");
            for (String value : List.of("lost", "again")) { // the agent lost its state, twice
                a.publish(1, value, Map.of("k", Agent.text(value)));
                same(true, c.refresh(), "moved " + value);
                same(false, c.refresh(), "moved more " + value);
                same(value, c.getString("k", ""), "after " + value);
            }
            if (!page) { // it comes later
                a.start();
                a.publish(4, "four", Map.of());
                same(true, c.refresh(), "moved to four");
                same(true, c.stale(), "not confirmed");
                a.store(Page.CONFIRMED, 1);
                same(false, c.stale(), "the page was found");
            }
        }
    }

    private static void age(Agent a) throws IOException {
        a.publish(1, "v", Map.of());
        try (Config c = Config.open(a.path)) {
            same(true, c.age().isEmpty() && c.stale(), "no page");
            a.start();
            a.publish(2, "w", Map.of());
            c.refresh();
            same(true, c.age().isEmpty() && c.stale(), "not confirmed");
            a.store(Page.CONFIRMED, 1);
            long up = c.age().orElseThrow().toMillis();
            same(true, up > 1000 && !c.stale(), "never stale");
            a.store(Page.STALE, 1000);
            same(true, c.stale(), "stale");
            a.store(Page.CONFIRMED, up);
            same(true, c.age().orElseThrow().toMillis() < 60_000, "recent");
            a.store(Page.CONFIRMED, up + 3_600_000);
            same(Duration.ZERO, c.age().orElseThrow(), "ahead");
        }
    }

    private static CompletableFuture<Boolean> waiting(Config c) {
        return CompletableFuture.supplyAsync(() -> {
            try {
                return c.await(Duration.ofSeconds(20));
            } catch (IOException | InterruptedException e) {
                throw new java.util.concurrent.CompletionException(e);
            }
        });
    }

    private static void await(Agent a) throws Exception {
        Config c = Config.openWaiting(a.path);
        same(false, c.await(Duration.ofMillis(3)), "nothing");
        CompletableFuture<Boolean> one = waiting(c);
        CompletableFuture<Boolean> other = waiting(c);
        a.start();
        a.publish(1, "v", Map.of());
        CompletableFuture.anyOf(one, other).get();
        a.publish(2, "v", Map.of()); // for the one that began late
        same(true, one.get() && other.get(), "both moved");
        for (long g = 3; g < 9; g++) {
            c.refresh();
            one = waiting(c);
            a.publish(g, "v", Map.of());
            same(true, one.get() || c.generation() == g, "moved");
            same(g, c.generation(), "generation");
        }
        Thread.currentThread().interrupt();
        fails(InterruptedException.class, () -> c.await(Duration.ofDays(99999999)), "interrupted");
        other = waiting(c);
        c.close();
        fails(java.util.concurrent.ExecutionException.class, other::get, "closed");
    }

    private static void withdrawn(Agent a) throws Exception {
        a.start();
        a.publish(1, "v", Map.of());
        try (Config c = Config.open(a.path)) {
            same(false, c.withdrawn(), "withdrawn at once");
            a.withdraw();
            same(true, c.withdrawn() && c.stale() && c.age().isEmpty(), "seen without a refresh");
            for (int i = 0; i < 2; i++) { // not once: nobody goes on without knowing
                fails(WithdrawnException.class, c::refresh, "refresh");
            }
            same(1L, c.generation(), "generation");
            fails(WithdrawnException.class, () -> Config.open(a.path), "open");
            try (Config empty = Config.openWaiting(a.path)) {
                same(true, empty.withdrawn() && !empty.refresh(), "empty");
            }
            same(false, c.await(Duration.ofMillis(3)), "not back yet");
            a.publish(1, "v", Map.of()); // the same: it is there again all the same
            same(true, c.await(Duration.ofSeconds(20)), "back");
            same(false, c.refresh() || c.withdrawn(), "withdrawn still");
            a.withdraw();
            fails(WithdrawnException.class, () -> c.await(Duration.ofSeconds(20)), "await");
            a.publish(2, "w", Map.of());
            same(true, c.refresh() && c.generation() == 2, "moved");
        }
    }

    private static long mapped(Agent a) throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
            return lines.filter(l -> l.contains(a.path.toString())).count();
        }
    }

    /** A program that allocates little, so that nothing is collected, keeps a bound of old versions. */
    private static void retired(Agent a) throws Exception {
        a.start();
        byte[] image = Agent.build(1, "1", Map.of("a", Agent.text("x".repeat(1 << 20))));
        a.write(image);
        a.announce(1);
        try (Config c = Config.open(a.path)) {
            for (long g = 2; g <= 150; g++) {
                a.write(image);
                a.announce(g);
                c.refresh();
                same(1 << 20, c.getString("a", "").length(), "a");
                same(true, mapped(a) < 40, "mapped images after " + g);
            }
            a.publish(200, "200", Map.of("a", Agent.text("short")));
            same(true, c.refresh(), "moved");
            same("short", c.getString("a", ""), "a");
            same(200L, c.generation(), "generation");
        }
    }

    private static void threads(Agent a) throws Exception {
        final long last = 300;
        a.start();
        a.publish(1, "1", Map.of("a", Agent.text("1"), "b", Agent.text("1")));
        try (Config c = Config.open(a.path)) {
            Key shared = c.key("a");
            List<CompletableFuture<Void>> readers = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                readers.add(CompletableFuture.runAsync(() -> {
                    while (c.generation() < last) {
                        try {
                            c.refresh();
                        } catch (IOException e) {
                            throw new AssertionError(e);
                        }
                        long before = c.generation();
                        long read = shared.getLong(0);
                        same(true, before <= read && read <= c.generation(), "a key of one version");
                        Map<String, Value> m = c.entries("");
                        same(m.get("a").text(), m.get("b").text(), "one version");
                    }
                }));
            }
            for (long g = 2; g <= last; g++) {
                Value v = Agent.text(String.valueOf(g));
                a.publish(g, v.text(), Map.of("a", v, "b", v));
            }
            for (CompletableFuture<Void> r : readers) {
                r.get(60, TimeUnit.SECONDS);
            }
        }
    }

    private static volatile Object sink;

    private static void measure(String what, Runnable body) {
        long best = Long.MAX_VALUE;
        for (int round = 0; round < 10; round++) {
            long began = System.nanoTime();
            for (int i = 0; i < 200_000; i++) {
                body.run();
            }
            best = Math.min(best, (System.nanoTime() - began) / 200_000);
        }
        System.out.println("  " + what + ": " + best + " ns");
    }

    private static void bench(Agent a) throws IOException {
        Map<String, Value> m = new HashMap<>();
        Properties properties = new Properties();
        for (int i = 0; i < 1000; i++) {
            m.put("server." + i + ".port", new Value(Value.Type.INT, String.valueOf(i), i));
            properties.setProperty("server." + i + ".port", String.valueOf(i));
        }
        a.start();
        a.publish(1, "v", m);
        try (Config c = Config.open(a.path)) {
            String key = "server.333.port";
            measure("getLong of 1000 keys", () -> sink = c.getLong(key, 0) == 333);
            measure("getString", () -> sink = c.getString(key, ""));
            Key named = c.key(key);
            measure("getString of a Key", () -> sink = named.getString(""));
            measure("refresh", () -> {
                try {
                    sink = c.refresh();
                } catch (IOException e) {
                    throw new AssertionError(e);
                }
            });
            measure("Properties in memory", () -> sink = properties.getProperty(key));
            String small = "a=1\nb=2\nc=3\nserver.port=333\ne=5\nf=6\ng=7\nh=8\ni=9\nj=10\n";
            measure("Properties of 10 lines parsed", () -> {
                try {
                    Properties parsed = new Properties();
                    parsed.load(new java.io.StringReader(small));
                    sink = parsed.getProperty("server.port");
                } catch (IOException e) {
                    throw new AssertionError(e);
                }
            });
            measure("System.getenv", () -> sink = System.getenv("PATH"));
        }
    }

    public static void main(String[] args) throws IOException {
        golden = Path.of(args[0]);
        test("xxh64", ConfigTest::xxh64);
        test("xxh3", ConfigTest::xxh3);
        test("long keys", ConfigTest::longKeys);
        test("typed", ConfigTest::typed);
        test("key", ConfigTest::key);
        test("texts", ConfigTest::texts);
        test("errors", ConfigTest::errors);
        test("flips", ConfigTest::flips);
        test("random", ConfigTest::random);
        test("refresh", a -> refresh(a, false));
        test("refresh with a page", a -> refresh(a, true));
        test("age", ConfigTest::age);
        test("await", ConfigTest::await);
        test("withdrawn", ConfigTest::withdrawn);
        test("threads", ConfigTest::threads);
        test("retired", ConfigTest::retired);
        for (String name : List.of("empty", "one", "types", "many", "collide")) {
            test("golden " + name, a -> golden(name));
        }
        String more = System.getenv("PULLET_VALUES");
        for (String stem : (golden.resolve("values") + ":" + (more == null ? "" : more)).split(":")) {
            test("values " + stem, a -> values(stem));
        }
        test("golden page", ConfigTest::goldenPage);
        json("bad/bad.json").forEach((name, want) -> {
            try {
                test("bad " + name, a -> bad(a, name, (Map<?, ?>) want));
            } catch (IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
        });
        Path cases = Path.of(System.getenv("PULLET_CASES")); // made by tests/golden/cases.py
        CasesTest.run(golden, cases);
        BindTest.run(cases);
        WaitTest.run();
        if (System.getenv("BENCH") != null) {
            test("bench", ConfigTest::bench);
        }
        end();
    }
}
