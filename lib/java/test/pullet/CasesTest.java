package pullet;

import static pullet.ConfigTest.same;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/** What every language answers alike: tests/golden/cases.json, which says how to read it. */
final class CasesTest {
    private static final Map<String, int[]> FIELDS = Map.of("magic", new int[] {0, 8},
            "generation", new int[] {8, 8}, "futex", new int[] {16, 4}, "withdrawn", new int[] {20, 4},
            "confirmed_ms", new int[] {24, 8}, "stale_ms", new int[] {32, 8});

    private final String name;
    private final Path images;
    private final Path directory;
    private Config config;

    private CasesTest(String name, Path images, Path directory) {
        this.name = name;
        this.images = images;
        this.directory = directory;
    }

    record Db(String host, @Setting(fallback = "5432") long port) {}

    record Server(String host, @Setting(fallback = "1") long weight) {}

    record Decoded(String name, @Setting(fallback = "80") long port, @Setting(fallback = "0.5") double ratio,
            @Setting(fallback = "false") boolean debug, @Setting(fallback = "5s") Duration timeout,
            @Setting(fallback = "1MiB", size = true) long limit, Optional<String> note, List<String> tags,
            Map<String, String> labels, Db db, List<Server> servers) {}

    private void act(Map<?, ?> s) throws IOException {
        Path snap = directory.resolve("web.snap");
        Path gen = directory.resolve("web.gen");
        Path made = directory.resolve("new");
        switch ((String) s.get("do")) {
            case "image" -> {
                byte[] b = Files.readAllBytes(images.resolve(name + "-" + s.get("number") + ".snap"));
                if (s.containsKey("flip")) {
                    b[Math.floorMod(((Long) s.get("flip")).intValue(), b.length)] ^= 1;
                }
                Files.write(made, s.containsKey("cut")
                        ? Arrays.copyOf(b, ((Long) s.get("cut")).intValue()) : b);
                Files.move(made, snap, StandardCopyOption.ATOMIC_MOVE);
            }
            case "page" -> {
                if (!Files.exists(gen)) {
                    Files.write(gen, ImageBuilder.le(new byte[Page.SIZE]).putLong(Page.MAGIC).array());
                }
                write(gen, s);
            }
            case "new page" -> {
                Files.write(made, ImageBuilder.le(new byte[Page.SIZE]).putLong(Page.MAGIC).array());
                write(made, s);
                Files.move(made, gen, StandardCopyOption.ATOMIC_MOVE);
            }
            case "remove" -> Files.delete(directory.resolve((String) s.get("file")));
            default -> throw new AssertionError(s);
        }
    }

    private static void write(Path page, Map<?, ?> s) throws IOException {
        try (RandomAccessFile f = new RandomAccessFile(page.toFile(), "rw")) {
            for (Map.Entry<?, ?> e : s.entrySet()) {
                int[] field = FIELDS.get(e.getKey());
                if (field != null) {
                    f.seek(field[0]);
                    f.write(ImageBuilder.le(new byte[8]).putLong((Long) e.getValue()).array(), 0, field[1]);
                }
            }
        }
    }

    private interface Getter<T> {
        T get(T fallback);
    }

    /** A getter's answer as a text, or null; that of the config and of a Key are one. */
    private static <T> String answer(Getter<T> getter, Getter<T> key, T one, T other, Function<T, String> show) {
        T got = getter.get(one);
        same(got, key.get(one), "its Key");
        same(getter.get(other), key.get(other), "its Key");
        return got.equals(one) && getter.get(other).equals(other) ? null : show.apply(got);
    }

    private static List<String> shown(Value v) {
        String value = switch (v.type()) {
            case BOOL -> String.valueOf(v.asBoolean());
            case INT -> String.valueOf(v.asLong());
            case DOUBLE -> number(v.asDouble());
            case LIST, MAP -> String.valueOf(v.count());
            default -> "";
        };
        return List.of(v.type().name().toLowerCase(), v.text(), value);
    }

    /** A number in a form that is the same whoever wrote it. */
    private static String number(double d) {
        return Double.isNaN(d) ? "nan" : Double.isInfinite(d) ? d > 0 ? "inf" : "-inf" : "=" + d;
    }

    private static Object sameNumbers(Object want) {
        return want == null || List.of("inf", "-inf", "nan").contains(want) ? want
                : number(Double.parseDouble((String) want));
    }

    private Object call(Map<?, ?> s) throws IOException {
        String key = (String) s.get("key");
        Config c = config;
        Key k = key == null || c == null ? null : c.key(key);
        return switch ((String) s.get("call")) {
            case "open" -> {
                if (c != null) {
                    c.close();
                }
                Path path = directory.resolve("web.snap");
                config = Boolean.TRUE.equals(s.get("wait_first")) ? Config.openWaiting(path) : Config.open(path);
                yield null;
            }
            case "refresh" -> c.refresh();
            case "get" -> c.get(key).map(CasesTest::shown).orElse(null);
            case "keys" -> {
                List<String> keys = new ArrayList<>();
                c.forEach((String) s.get("prefix"), (each, value) -> keys.add(each));
                yield keys;
            }
            case "tree" -> c.as(Map.class);
            case "decode" -> plain(Boolean.TRUE.equals(s.get("strict"))
                    ? c.as(Decoded.class, Configuration.Option.STRICT) : c.as(Decoded.class));
            case "generation" -> c.generation();
            case "version" -> c.version();
            case "count" -> (long) c.count();
            case "stale" -> c.stale();
            case "withdrawn" -> c.withdrawn();
            case "age" -> c.age().map(Duration::toMillis).orElse(null);
            case "string" -> answer(f -> c.getString(key, f), k::getString, "\0a", "\0b", x -> x);
            case "int" -> answer(f -> c.getLong(key, f), k::getLong, -11L, -12L, String::valueOf);
            case "size" -> answer(f -> c.getSize(key, f), k::getSize, -11L, -12L, String::valueOf);
            case "double" -> answer(f -> c.getDouble(key, f), k::getDouble, -11.0, -12.0, CasesTest::number);
            case "bool" -> answer(f -> c.getBoolean(key, f), k::getBoolean, true, false, String::valueOf);
            case "duration_ms" -> answer(f -> c.getDuration(key, f), k::getDuration, Duration.ofNanos(1),
                    Duration.ofNanos(2), d -> String.valueOf(d.toMillis()));
            default -> throw new AssertionError(s);
        };
    }

    private static Map<String, Object> plain(Decoded d) {
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("name", d.name);
        m.put("port", d.port);
        m.put("ratio", d.ratio);
        m.put("debug", d.debug);
        m.put("timeout", d.timeout.toMillis());
        m.put("limit", d.limit);
        m.put("note", d.note.orElse(null));
        m.put("tags", d.tags);
        m.put("labels", d.labels);
        m.put("db", Map.of("host", d.db.host, "port", d.db.port));
        m.put("servers", d.servers.stream().map(x -> Map.of("host", x.host, "weight", x.weight)).toList());
        return m;
    }

    private static String kind(IOException e) {
        return e instanceof WithdrawnException ? "withdrawn" : e instanceof NotPublishedException ? "not published"
                : e instanceof DamagedException ? "damaged" : e instanceof ForeignException ? "foreign"
                : e instanceof MismatchException ? "decode" : e.toString();
    }

    private void step(int n, Map<?, ?> s) throws IOException {
        String what = "step " + n + " " + s;
        if (s.containsKey("do")) {
            act(s);
            return;
        }
        try {
            Object got = call(s);
            same(null, s.get("error"), what);
            Object want = s.get("is");
            if (s.get("call").equals("double")) {
                want = sameNumbers(want);
            } else if (want instanceof List<?> l && l.size() == 3 && "double".equals(l.get(0))) {
                want = Arrays.asList(l.get(0), l.get(1), sameNumbers(l.get(2)));
            }
            same(want, got, what);
        } catch (IOException e) {
            same(s.get("error"), kind(e), what);
            if (e instanceof MismatchException m) {
                same(s.containsKey("keys") ? s.get("keys") : List.of(s.get("key")),
                        m.problems().stream().map(MismatchException.Problem::key).toList(), what);
                for (Object says : s.containsKey("says") ? (List<?>) s.get("says") : List.of()) {
                    same(true, m.getMessage().contains((String) says), m.getMessage());
                }
                same(config.generation(), m.generation(), what);
            }
        }
    }

    static void run(Path golden, Path images) throws IOException {
        Map<?, ?> all = (Map<?, ?>) Json.parse(Files.readString(golden.resolve("cases.json")));
        for (Object each : (List<?>) all.get("cases")) {
            Map<?, ?> one = (Map<?, ?>) each;
            ConfigTest.test("case " + one.get("name"), a -> {
                CasesTest t = new CasesTest((String) one.get("name"), images, a.path.getParent());
                int n = 0;
                for (Object s : (List<?>) one.get("steps")) {
                    t.step(n++, (Map<?, ?>) s);
                }
                t.config.close();
            });
        }
    }
}
