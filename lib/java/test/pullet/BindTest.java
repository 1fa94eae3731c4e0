package pullet;

import static pullet.ConfigTest.fails;
import static pullet.ConfigTest.same;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Records of a config, and the fake. */
final class BindTest {
    private BindTest() {}

    enum Level { DEBUG, WARN_ALL }

    record Db(String host, @Setting(fallback = "5432") int port) {
        Db {
            if (port < 0) {
                throw new IllegalArgumentException("a port is not negative");
            }
        }
    }

    private record All(String name, int maxConns, short small, @Setting("max-body") Long body,
            @Setting(value = "limit", size = true) long limit, double ratio, Float half, boolean debug,
            Duration timeout, Level level, Db db, Optional<Db> standby, Optional<Integer> none,
            List<String> hosts, List<Db> pools, Map<String, Double> weights, Object any, Value raw,
            BigDecimal exact, BigInteger large, List<String> missing, Map<String, Object> nothing,
            @Setting(fallback = "7s") Duration delay) {}

    private static Map<String, Object> document() {
        Map<String, Object> m = new HashMap<>(Map.of("name", "n", "max_conns", "17", "small", -3, "max-body", 5,
                "limit", "64KiB", "ratio", 0.5, "half", "0.5", "debug", "true"));
        m.putAll(Map.of("timeout", Duration.ofSeconds(10), "level", "warn-all",
                "db", Map.of("host", "h"), "hosts", List.of("a", "b"),
                "pools", List.of(Map.of("host", "p", "port", 1)), "weights", Map.of("x.y", 1, "z", 0.25),
                "any", Map.of("l", Arrays.asList(1, 2.5, null, true, "t")), "raw", new BigDecimal("1.10"),
                "exact", new BigDecimal("1.10"), "large", "123456789012345678901234567890"));
        m.put("none", null);
        m.put("unknown", 1);
        return m;
    }

    private static void as(Agent unused) throws IOException {
        try (FakeConfig f = FakeConfig.of(document())) {
            All all = f.as(All.class);
            same(new All("n", 17, (short) -3, 5L, 65536, 0.5, 0.5f, true, Duration.ofSeconds(10), Level.WARN_ALL,
                    new Db("h", 5432), Optional.empty(), Optional.empty(), List.of("a", "b"),
                    List.of(new Db("p", 1)), Map.of("x.y", 1.0, "z", 0.25),
                    Map.of("l", Arrays.asList(1L, 2.5, null, true, "t")),
                    new Value(Value.Type.DOUBLE, "1.10", Double.doubleToLongBits(1.1)), new BigDecimal("1.10"),
                    new BigInteger("123456789012345678901234567890"), List.of(), Map.of(), Duration.ofSeconds(7)),
                    all, "record");
            same(new Db("h", 5432), f.as("db", Db.class), "below");
            same(20, f.as(Map.class).size(), "a map");
            fails(IllegalArgumentException.class, () -> f.as(String.class), "no record");
            try {
                f.as(All.class, Configuration.Option.STRICT);
                throw new AssertionError("not strict");
            } catch (MismatchException e) {
                same("(fake), generation 1: unknown is not known", e.getMessage(), "message");
            }
            try {
                FakeConfig.of(Map.of("host", "h", "prot", 1)).as(Db.class, Configuration.Option.STRICT);
                throw new AssertionError("not strict");
            } catch (MismatchException e) {
                same("(fake), generation 1: prot is not known: did you mean port?", e.getMessage(), "message");
            }
        }
        same("max_conns db_host user_id http a", String.join(" ", Binder.snake("maxConns"), Binder.snake("DBHost"),
                Binder.snake("userID"), Binder.snake("http"), Binder.snake("a")), "snake");
    }

    private record Wrong(boolean debug, byte small, int number, Duration delay, @Setting(size = true) long size,
            List<Integer> list, List<Integer> items, Level level, Map<String, Integer> map, String text, Db db,
            Db other, Db gone, BigInteger whole, float wide) {}

    private static void mismatch(Agent unused) throws IOException {
        Map<String, Object> m = new HashMap<>(Map.of("debug", "secret1", "small", 300, "number", 1.5, "delay", 5,
                "size", "1kB", "list", "secret2", "items", Arrays.asList(1, "x", null), "level", "secret3",
                "map", Map.of("a.b", true)));
        m.putAll(Map.of("text", Map.of(), "db", Map.of("port", 1), "other", Map.of("host", "h", "port", -1),
                "whole", "1.5", "wide", 1e300));
        try (FakeConfig f = FakeConfig.of(m)) {
            f.as(Wrong.class);
            throw new AssertionError("it fits");
        } catch (MismatchException e) {
            List<String> got = new ArrayList<>();
            e.problems().forEach(p -> got.add(p.key() + ": " + p.detail()));
            same(List.of("debug: must be true or false, but is a text of another form",
                    "small: must be an integer such as 17 that fits byte, but is an integer that does not fit",
                    "number: must be an integer such as 17 that fits int, but is a number",
                    "delay: must be a duration such as 10s or 1h30m, but is an integer",
                    "size: must be a size such as 64KiB that fits long, but is a text of another form",
                    "list: must be a list, but is a text",
                    "items.1: must be an integer such as 17 that fits Integer, but is a text of another form",
                    "items.2: is null",
                    "level: must be one of DEBUG, WARN_ALL, but is another text",
                    "map.a\\.b: must be an integer such as 17 that fits Integer, but is true or false",
                    "text: must be a text, but is a mapping", "db.host: is missing",
                    "other: is rejected: a port is not negative", "gone.host: is missing",
                    "whole: must be an integer such as 17, but is a text of another form",
                    "wide: must be a number such as 0.5 that fits float, but is a number that does not fit"), got, "problems");
            same(true, e.getMessage().startsWith("(fake), generation 1: debug must be")
                    && e.getMessage().endsWith("; and 8 more") && !e.getMessage().contains("secret"), e.getMessage());
            same("(fake) 1 fake-1", e.path() + " " + e.generation() + " " + e.version(), "where");
        }
        try (FakeConfig f = FakeConfig.of(Map.of())) {
            fails(IllegalArgumentException.class, () -> FakeConfig.of(Map.of("t", "a")).as(Odd.class), "a thread");
            fails(MismatchException.class, () -> f.as("no.where", Db.class), "no such key");
        }
        try (FakeConfig f = FakeConfig.of(Map.of("ports", 1))) {
            f.as(Unfit.class);
            throw new AssertionError("it fits");
        } catch (MismatchException e) {
            same(true, e.getMessage().endsWith("but is a text of another form"), e.getMessage());
        }
    }

    private record Odd(Thread t) {}

    private record Unfit(@Setting(fallback = "x") int port) {}

    private static void fake(Agent unused) throws Exception {
        FakeConfig f = FakeConfig.of(Map.of("timeout", Duration.ofMillis(1500), "db", Map.of("host", "a"),
                "a.b", 1, "big", new BigInteger("18446744073709551615"), "hosts", new Object[] {"x"}));
        try (Configuration c = f) {
            same(Duration.ofMillis(1500), c.getDuration("timeout", Duration.ZERO), "duration");
            same("1 x 18446744073709551615", c.getInt("a\\.b", 0) + " " + c.getString("hosts.0", "") + " "
                    + c.getString("big", ""), "values");
            same(true, !c.stale() && c.age().orElseThrow().toMinutes() == 0 && c.generation() == 1, "fresh");
            f.setAge(Duration.ofMinutes(1).minusSeconds(58), Duration.ofSeconds(1));
            same(true, c.stale() && c.age().orElseThrow().toSeconds() >= 2, "stale");
            Key k = c.key("db.host");
            CompletableFuture<Void> next = c.nextChange();
            f.set("db.host", "b");
            next.get(20, TimeUnit.SECONDS);
            same(true, c.refresh() && k.getString("").equals("b") && !c.stale(), "set");
            f.damage();
            c.nextChange().get(20, TimeUnit.SECONDS);
            fails(DamagedException.class, c::refresh, "damaged");
            f.withdraw();
            c.nextChange().get(20, TimeUnit.SECONDS);
            fails(WithdrawnException.class, c::refresh, "withdrawn");
            f.set("new.deep", List.of(1, 2));
            same(true, c.await(Duration.ofSeconds(20)) && c.getInt("new.deep.1", 0) == 2
                    && k.getString("").equals("b"), "back");
            for (Map.Entry<String, Object> e : Map.<String, Object>of("db.host.x", 1, "hosts.0", "y",
                    "x", new Object(), "nul", "a\0", "m", Map.of(1, 2)).entrySet()) {
                fails(IllegalArgumentException.class, () -> {
                    f.set(e.getKey(), e.getValue());
                    return null;
                }, e.getKey());
            }
            same(false, c.refresh(), "nothing changed");
        }
        same(0, f.count(), "closed");
    }

    /** The document of an image is the same to a reader, from a fake. */
    private static void fakeAsAgent(Path image) throws IOException {
        try (Config c = Config.open(image)) {
            @SuppressWarnings("unchecked")
            Map<String, ?> document = c.as(Map.class);
            try (FakeConfig f = FakeConfig.of(document)) {
                c.forEach("", (key, value) -> {
                    Value got = f.get(key).orElseThrow(() -> new AssertionError(key));
                    same(value.type() + " " + value.raw(), got.type() + " " + got.raw(), key);
                });
                List<String> keys = new ArrayList<>();
                List<String> want = new ArrayList<>();
                f.forEach("", (key, value) -> keys.add(key));
                c.forEach("", (key, value) -> want.add(key));
                same(want, keys, "order");
            }
        }
    }

    static void run(Path cases) throws IOException {
        ConfigTest.test("as", BindTest::as);
        ConfigTest.test("mismatch", BindTest::mismatch);
        ConfigTest.test("fake", BindTest::fake);
        for (String name : List.of("types", "nesting", "unicode", "overflow", "decode")) {
            ConfigTest.test("fake " + name, a -> fakeAsAgent(cases.resolve(name + "-1.snap")));
        }
    }
}
