package pullet;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BiConsumer;
import java.util.regex.Pattern;

/**
 * One version of one configuration, whole, until {@link #refresh} or {@link #await} moves it to a
 * newer one. A lookup takes no lock and makes no system call. The agent's death disturbs nobody.
 *
 * <pre>{@code
 * try (Config config = Config.open("web")) {
 *     String host = config.getString("db.host", "localhost");
 *     ...
 *     config.refresh(); // now and then: is there a newer version?
 * }
 * }</pre>
 *
 * <p>All methods may be called by any number of threads at once: the version that is open is an
 * immutable image behind a volatile reference. A mapping that was replaced or closed is unmapped by
 * the garbage collector. A series of lookups may see two versions when another thread refreshes in
 * between; {@link #forEach} and {@link #entries} see one.
 *
 * <p>A key is its segments joined with '.', as in {@code servers.0.host}; a dot in a segment is
 * written {@code \.} and a backslash {@code \\}. The typed methods return the fallback when there is
 * no such key or its value is not of the type.
 */
public final class Config implements AutoCloseable {
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}");
    private static final Pattern INTEGER = Pattern.compile("[+-]?[0-9]+");
    private static final Pattern NUMBER =
            Pattern.compile("[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?");
    private static final String[] DURATION_UNITS = {"ms", "s", "m", "h", "d"};
    private static final long[] DURATION_FACTORS = {1, 1000, 60_000, 3_600_000, 86_400_000};
    private static final String[] SIZE_UNITS = {"", "B", "KiB", "MiB", "GiB", "TiB"};
    private static final long[] SIZE_FACTORS = {1, 1, 1L << 10, 1L << 20, 1L << 30, 1L << 40};
    private static final long FIRST_PAUSE = 1_000_000; // nanoseconds
    private static final long LAST_PAUSE = 100_000_000;

    private final Path path;
    private final Path pagePath;
    private final Object moving = new Object(); // who moves or closes
    private volatile Image image = Image.NOTHING;
    private volatile Page page; // null until there is one
    private volatile long seen; // the page's futex when the image was last looked at
    private volatile boolean gone; // withdrawn, and a refresh has said so
    private volatile boolean closed;

    private Config(Path path, boolean waiting) throws IOException {
        this.path = path;
        Path file = path.getFileName();
        String name = file == null ? "" : file.toString();
        String stem = name.length() > 5 && name.endsWith(".snap")
                ? name.substring(0, name.length() - 5) : name;
        pagePath = path.resolveSibling(stem + ".gen");
        try {
            look();
        } catch (NotPublishedException e) {
            if (!waiting) {
                throw e;
            }
        }
    }

    /**
     * Opens a config by its name (the file NAME.snap in /run/pullet or $PULLET_RUNTIME_DIR) or, if
     * there is a '/' in it, the snapshot file at a path.
     *
     * @param nameOrPath the name or path
     * @return the newest version
     * @throws NotPublishedException when nothing is published yet
     * @throws WithdrawnException when the agent publishes it no more
     * @throws DamagedException when the snapshot is damaged
     * @throws ForeignException when it is not a snapshot, or of an unknown layout
     * @throws IOException when the file cannot be read for another reason
     * @throws IllegalArgumentException when it is not a name
     */
    public static Config open(String nameOrPath) throws IOException {
        return new Config(find(nameOrPath), false);
    }

    /**
     * Opens the snapshot file at a path.
     *
     * @param path the file
     * @return the newest version
     * @throws IOException as {@link #open(String)}
     */
    public static Config open(Path path) throws IOException {
        return new Config(path, false);
    }

    /**
     * As {@link #open(String)}, and succeeds before the agent has published anything: everything is
     * as if empty until {@link #refresh} or {@link #await} finds something.
     *
     * @param nameOrPath the name or path
     * @return the newest version, or nothing yet
     * @throws IOException as {@link #open(String)}
     */
    public static Config openWaiting(String nameOrPath) throws IOException {
        return new Config(find(nameOrPath), true);
    }

    /**
     * As {@link #openWaiting(String)}, the snapshot file at a path.
     *
     * @param path the file
     * @return the newest version, or nothing yet
     * @throws IOException as {@link #open(String)}
     */
    public static Config openWaiting(Path path) throws IOException {
        return new Config(path, true);
    }

    private static Path find(String nameOrPath) {
        if (nameOrPath.contains("/")) {
            return Path.of(nameOrPath);
        }
        if (!NAME.matcher(nameOrPath).matches()) {
            throw new IllegalArgumentException("\"" + nameOrPath + "\" is not a name: 1 to 64 letters,"
                    + " digits, '.', '_' and '-', a letter or digit first");
        }
        String directory = System.getenv("PULLET_RUNTIME_DIR");
        return Path.of(directory == null || directory.isEmpty() ? "/run/pullet" : directory,
                nameOrPath + ".snap");
    }

    private boolean upToDate() {
        Page p = page;
        return p != null && p.futex() == seen;
    }

    /**
     * Takes the image at the path and tells whether that is another one; not by its number, for an
     * agent that lost its state begins again. An image that is not good is not looked at again until
     * the page says something new; one that was withdrawn is, each time. What a withdrawn config
     * comes back with is another one, even if it is the same.
     */
    private boolean look() throws IOException {
        Page p = page;
        if (p == null || !p.isAt(pagePath)) { // one that was removed is another one now
            Page there = Page.open(pagePath);
            p = there == null ? p : there;
        }
        if (page == null) {
            page = p;
        }
        long now = p == null ? 0 : p.futex(); // before the image, in place before it changes
        if (p == null && image != Image.NOTHING && image.isAt(Image.stampOf(path))) {
            return false;
        }
        Image newest;
        try {
            newest = Image.load(path);
        } catch (DamagedException | ForeignException e) {
            page = p;
            seen = now;
            gone = false;
            throw e;
        } catch (NotPublishedException e) {
            if (p == null || !p.withdrawn()) {
                throw e;
            }
            gone = image != Image.NOTHING;
            throw new WithdrawnException(path + ": withdrawn: the agent publishes this config no more,"
                    + " for it was removed or says `snapshot: false`");
        }
        page = p;
        seen = now;
        boolean moved = gone || newest.digest != image.digest;
        gone = false;
        image = newest;
        return moved;
    }

    /**
     * Moves to the newest version; when there is nothing newer it costs one load. After an exception
     * the version that is open stays in use. {@link WithdrawnException} is thrown each time until the
     * config comes back: whether to go on with the last values is for the application to decide.
     *
     * @return whether it moved
     * @throws IOException as {@link #open(String)}
     * @throws IllegalStateException when it was closed
     */
    public boolean refresh() throws IOException {
        if (upToDate()) {
            return false;
        }
        synchronized (moving) {
            if (closed) {
                throw new IllegalStateException("the config was closed");
            }
            if (upToDate()) {
                return false;
            }
            try {
                return look();
            } catch (NotPublishedException e) {
                if (image == Image.NOTHING) {
                    return false;
                }
                throw e;
            }
        }
    }

    /**
     * Waits until there is a newer version than the one that is open, and moves to it. Java has no
     * futex: the mapped control page is looked at in intervals that grow from 1 ms to 100 ms (one
     * load each; without a control page the files are looked at), so a new version is seen up to
     * 100 ms late. {@link WithdrawnException} is thrown once; the next call, or one after a refresh
     * that threw it, waits for the config to come back.
     *
     * @param timeout how long at most
     * @return whether it moved; false when the time has passed
     * @throws IOException as {@link #refresh}
     * @throws InterruptedException when the thread was interrupted
     * @throws IllegalStateException when it was closed, also while it waits
     */
    public boolean await(Duration timeout) throws IOException, InterruptedException {
        long start = image.digest;
        boolean known = gone;
        long began = System.nanoTime();
        long limit = timeout.compareTo(Duration.ofDays(36500)) > 0
                ? Long.MAX_VALUE : timeout.toNanos();
        for (long pause = FIRST_PAUSE;; pause = Math.min(2 * pause, LAST_PAUSE)) {
            boolean still = false;
            try {
                refresh();
            } catch (WithdrawnException e) {
                if (!known) {
                    throw e;
                }
                still = true;
            }
            if (image.digest != start || known && !still) {
                return true;
            }
            if (Thread.interrupted()) {
                throw new InterruptedException();
            }
            long left = limit - (System.nanoTime() - began);
            if (left <= 0) {
                return false;
            }
            LockSupport.parkNanos(this, Math.min(pause, left));
        }
    }

    /** Lets go of the version that is open: everything is as if empty from then on. */
    @Override
    public void close() {
        synchronized (moving) {
            closed = true;
            image = Image.NOTHING;
            page = null;
        }
    }

    private Value look(String key) {
        Image i = image;
        return i.value(i.find(key));
    }

    Image image() {
        return image;
    }

    /**
     * Names a key that is read often; it need not be there.
     *
     * @param key the key
     * @return it
     */
    public Key key(String key) {
        return new Key(this, key);
    }

    /**
     * Looks a key up.
     *
     * @param key the key
     * @return its value
     */
    public Optional<Value> get(String key) {
        return Optional.ofNullable(look(key));
    }

    private static boolean isScalar(Value.Type type) {
        return switch (type) {
            case BOOL, INT, DOUBLE, STRING -> true;
            default -> false;
        };
    }

    /**
     * Any scalar but null, as it was written.
     *
     * @param key the key
     * @param fallback what to return else
     * @return it
     */
    public String getString(String key, String fallback) {
        Image i = image;
        int record = i.find(key);
        return record >= 0 && isScalar(i.type(record)) ? i.text(record) : fallback;
    }

    /**
     * As {@link #getLong}, when it fits an int.
     *
     * @param key the key
     * @param fallback what to return else
     * @return it
     */
    public int getInt(String key, int fallback) {
        return toInt(look(key), fallback);
    }

    /**
     * An integer, or a string that is one, whole.
     *
     * @param key the key
     * @param fallback what to return else
     * @return it
     */
    public long getLong(String key, long fallback) {
        return toLong(look(key), fallback);
    }

    // What the getters make of a value, which is null where there is no such key.

    static String toText(Value v, String fallback) {
        return v != null && isScalar(v.type()) ? v.text() : fallback;
    }

    static int toInt(Value v, int fallback) {
        long n = toLong(v, fallback);
        return n == (int) n ? (int) n : fallback;
    }

    static long toLong(Value v, long fallback) {
        if (v != null && v.type() == Value.Type.INT) {
            return v.raw();
        }
        return v == null || v.type() != Value.Type.STRING ? fallback : parse(v.text(), fallback);
    }

    static double toDouble(Value v, double fallback) {
        if (v == null) {
            return fallback;
        }
        switch (v.type()) {
            case INT:
            case DOUBLE:
                return v.asDouble();
            case STRING:
                double n = NUMBER.matcher(v.text()).matches()
                        ? Double.parseDouble(v.text()) : Double.NaN;
                return Double.isFinite(n) ? n : fallback;
            default:
                return fallback;
        }
    }

    static boolean toBoolean(Value v, boolean fallback) {
        if (v != null && v.type() == Value.Type.BOOL) {
            return v.asBoolean();
        }
        if (v == null || v.type() != Value.Type.STRING) {
            return fallback;
        }
        return v.text().equals("true") || !v.text().equals("false") && fallback;
    }

    static Duration toDuration(Value v, Duration fallback) {
        Long n = v == null ? null : units(v, DURATION_UNITS, DURATION_FACTORS);
        return n == null ? fallback : Duration.ofMillis(n);
    }

    static long toSize(Value v, long fallback) {
        if (v != null && v.type() == Value.Type.INT) {
            return v.raw();
        }
        Long n = v == null ? null : units(v, SIZE_UNITS, SIZE_FACTORS);
        return n == null ? fallback : n;
    }

    private static long parse(String text, long fallback) {
        if (!INTEGER.matcher(text).matches()) {
            return fallback;
        }
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException e) {
            return fallback; // more than 64 bits
        }
    }

    /**
     * A number, or a string that is one in decimal.
     *
     * @param key the key
     * @param fallback what to return else
     * @return it
     */
    public double getDouble(String key, double fallback) {
        return toDouble(look(key), fallback);
    }

    /**
     * True or false, or a string that is one of these words.
     *
     * @param key the key
     * @param fallback what to return else
     * @return it
     */
    public boolean getBoolean(String key, boolean fallback) {
        return toBoolean(look(key), fallback);
    }

    /**
     * A string like "500ms", "10s", "5m", "1h" or "2d".
     *
     * @param key the key
     * @param fallback what to return else
     * @return it
     */
    public Duration getDuration(String key, Duration fallback) {
        return toDuration(look(key), fallback);
    }

    /**
     * A string like "64KiB" or "8MiB", or an integer, in bytes.
     *
     * @param key the key
     * @param fallback what to return else
     * @return it
     */
    public long getSize(String key, long fallback) {
        return toSize(look(key), fallback);
    }

    /** An integer and a unit; null when it is not, or exceeds 64 bits. */
    private static Long units(Value v, String[] units, long[] factors) {
        if (v.type() != Value.Type.STRING) {
            return null;
        }
        String text = v.text();
        int digits = 0;
        while (digits < text.length() && "+-0123456789".indexOf(text.charAt(digits)) >= 0) {
            digits++;
        }
        String number = text.substring(0, digits);
        for (int i = 0; i < units.length; i++) {
            if (units[i].equals(text.substring(digits)) && INTEGER.matcher(number).matches()) {
                try {
                    return Math.multiplyExact(Long.parseLong(number), factors[i]);
                } catch (ArithmeticException | NumberFormatException e) {
                    return null;
                }
            }
        }
        return null;
    }

    /**
     * Calls for each key that begins with a prefix, in the order of the keys' bytes.
     *
     * @param prefix the prefix; "" = all
     * @param action takes a key and its value
     */
    public void forEach(String prefix, BiConsumer<String, Value> action) {
        image.each(prefix, action);
    }

    /**
     * A copy of all that begins with a prefix, in the order of {@link String#compareTo}.
     *
     * @param prefix the prefix; "" = all
     * @return a map that cannot be changed
     */
    public SortedMap<String, Value> entries(String prefix) {
        SortedMap<String, Value> all = new TreeMap<>();
        forEach(prefix, all::put);
        return Collections.unmodifiableSortedMap(all);
    }

    /**
     * The generation that is open, 64 bits without a sign.
     *
     * @return it; 0 when nothing is yet
     */
    public long generation() {
        return image.generation;
    }

    /**
     * The server's name for the version that is open (ETag or revision).
     *
     * @return it; "" when it gave none or nothing is open
     */
    public String version() {
        return image.version;
    }

    /**
     * The number of keys.
     *
     * @return it
     */
    public int count() {
        return image.count;
    }

    /**
     * The time since the server last confirmed the newest version, suspend included. The clock is
     * /proc/uptime, which is CLOCK_BOOTTIME in steps of 10 ms; a container whose /proc/uptime is
     * not the kernel's (lxcfs) gets a wrong age.
     *
     * @return it; empty when the server did not confirm since the agent started, or there is no
     *     control page beside the snapshot
     */
    public Optional<Duration> age() {
        Page p = page;
        return p == null ? Optional.empty() : ageOn(p);
    }

    private static Optional<Duration> ageOn(Page p) {
        long confirmed = p.confirmedMillis();
        if (confirmed == 0) {
            return Optional.empty();
        }
        try {
            String seconds = Files.readString(Path.of("/proc/uptime")).split(" ")[0];
            long now = Math.round(Double.parseDouble(seconds) * 1000);
            return Optional.of(Duration.ofMillis(Math.max(0, now - confirmed)));
        } catch (IOException | NumberFormatException e) {
            return Optional.empty();
        }
    }

    /**
     * Whether the agent publishes this config no more, since it was removed or says
     * {@code snapshot: false}; as it is now, without a refresh.
     *
     * @return whether it is so
     */
    public boolean withdrawn() {
        Page p = page;
        return p != null && p.withdrawn();
    }

    /**
     * Whether the age is not known, or has reached what the agent calls stale: longer than its
     * longest delay between two pulls.
     *
     * @return whether it is so
     */
    public boolean stale() {
        Page p = page;
        Optional<Duration> age = p == null ? Optional.empty() : ageOn(p);
        if (age.isEmpty()) {
            return true;
        }
        long limit = p.staleMillis();
        return limit != 0 && Long.compareUnsigned(age.get().toMillis(), limit) >= 0;
    }
}
