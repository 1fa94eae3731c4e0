package pullet;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
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
 * the garbage collector; where 32 MiB wait for it, a newer version is copied instead of mapped. A
 * series of lookups may see two versions when another thread refreshes in
 * between; {@link #forEach} and {@link #entries} see one.
 * */
public sealed class Config implements Configuration permits FakeConfig {
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}");

    private final Path path;
    private final Source source;
    private final Set<Waiting> waiting = ConcurrentHashMap.newKeySet(); // told when it is closed
    private final Object moving = new Object(); // who moves or closes
    private volatile Image image = Image.NOTHING;
    private volatile Page page; // null until there is one
    private volatile long seen; // the page's futex when the image was last looked at
    private volatile Object lookedAt; // that futex, or the image's stamp, whatever was found
    private volatile boolean gone; // withdrawn, and a refresh has said so
    private volatile boolean closed;

    Config(Path path, Source source, boolean waitFirst) throws IOException {
        this.path = path;
        this.source = source;
        try {
            look();
        } catch (NotPublishedException e) {
            if (!waitFirst) {
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
        return named(nameOrPath, false);
    }

    /**
     * Opens the snapshot file at a path.
     *
     * @param path the file
     * @return the newest version
     * @throws IOException as {@link #open(String)}
     */
    public static Config open(Path path) throws IOException {
        return at(path, false);
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
        return named(nameOrPath, true);
    }

    /**
     * As {@link #openWaiting(String)}, the snapshot file at a path.
     *
     * @param path the file
     * @return the newest version, or nothing yet
     * @throws IOException as {@link #open(String)}
     */
    public static Config openWaiting(Path path) throws IOException {
        return at(path, true);
    }

    private static Config at(Path path, boolean waitFirst) throws IOException {
        try {
            return new Config(path, Source.Files.of(path), waitFirst);
        } catch (AccessDeniedException e) {
            throw Explain.denied(path);
        }
    }

    private static Config named(String nameOrPath, boolean waitFirst) throws IOException {
        Path path = find(nameOrPath);
        try {
            return at(path, waitFirst);
        } catch (WithdrawnException e) {
            throw e;
        } catch (NotPublishedException e) {
            throw nameOrPath.contains("/") ? e : Explain.notPublished(path);
        }
    }

    private static Path find(String nameOrPath) {
        if (nameOrPath.contains("/")) {
            return Path.of(nameOrPath);
        }
        if (!NAME.matcher(nameOrPath).matches()) {
            throw new IllegalArgumentException("\"" + nameOrPath + "\" is not a name: 1 to 64 letters,"
                    + " digits, '.', '_' and '-', a letter or digit first");
        }
        return Explain.runtimeDirectory().resolve(nameOrPath + ".snap");
    }

    private boolean upToDate() {
        Page p = page;
        return p != null && p.futex() == seen;
    }

    /** What was withdrawn may have come back just now, and said so afterwards: looks again. */
    private Image load(Page p) throws IOException {
        try {
            return source.load();
        } catch (NotPublishedException e) {
            if (p == null || p.withdrawn()) {
                throw e;
            }
            return source.load();
        }
    }

    /**
     * Takes the image at the path and tells whether that is another one; not by its number, for an
     * agent that lost its state begins again. An image that is not good is not looked at again until
     * the page says something new; one that was withdrawn is, each time. What a withdrawn config
     * comes back with is another one, even if it is the same.
     */
    private boolean look() throws IOException {
        Page p = source.pageAfter(page);
        if (page == null) {
            page = p;
        }
        long now = p == null ? 0 : p.futex(); // before the image, in place before it changes
        lookedAt = p == null ? null : now;
        Image newest;
        try {
            if (p == null) {
                Object stamp = source.stamp();
                lookedAt = stamp;
                if (image != Image.NOTHING && image.isAt(stamp)) {
                    return false;
                }
            }
            newest = load(p);
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
        Image old = image;
        image = newest;
        old.retire();
        return moved;
    }

    @Override
    public <T> T as(Class<T> type, Option... options) throws MismatchException {
        return as("", type, options);
    }

    @Override
    public <T> T as(String key, Class<T> type, Option... options) throws MismatchException {
        Binder binder = new Binder(List.of(options).contains(Option.STRICT));
        Image i = image;
        T made = type.cast(binder.bind(Tree.of(i, key), key, type));
        if (!binder.problems().isEmpty() && i == Image.NOTHING && !closed) {
            throw new MismatchException(path.toString(), Explain.empty(path, withdrawn()), binder.problems());
        }
        if (!binder.problems().isEmpty()) {
            throw new MismatchException(path.toString(), i.generation, i.version, binder.problems());
        }
        return made;
    }

    @Override
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

    /** Whether there is something newer than what was looked at last; reads no image. */
    boolean isNewer() {
        if (closed) {
            throw new IllegalStateException("the config was closed");
        }
        Page p = page;
        if (p != null) {
            return !Long.valueOf(p.futex()).equals(lookedAt);
        }
        try {
            return !source.stamp().equals(lookedAt);
        } catch (IOException e) {
            return false; // nothing is there
        }
    }

    /**
     * Goes over to another page that is at the path now, once it says something: an agent that was
     * started again, where the directory did not outlive it, never changes the old one. The next
     * refresh looks. False when there is one that says nothing yet.
     */
    boolean renewPage() {
        synchronized (moving) {
            Page p = page == null || closed ? page : source.pageAfter(page);
            if (p == page) {
                return true;
            }
            if (p.generation() == 0 && !p.withdrawn()) {
                return false;
            }
            page = p;
            seen = -1;
            lookedAt = null;
            return true;
        }
    }

    boolean isClosed() {
        return closed;
    }

    /** A hint that is told when the config is closed, too. */
    private record Waiting(Config config, Source.Hint hint, Runnable told) implements Source.Hint {
        @Override
        public boolean isWatching() {
            return hint.isWatching();
        }

        @Override
        public void close() {
            hint.close();
            config.waiting.remove(this);
        }
    }

    Source.Hint hint(Runnable told) {
        Waiting w = new Waiting(this, source.hint(told), told);
        waiting.add(w);
        return w;
    }

    @Override
    public CompletableFuture<Void> nextChange() {
        Follower f = new Follower(this);
        f.begin();
        return f.future;
    }

    @Override
    public boolean await(Duration timeout) throws IOException, InterruptedException {
        long start = image.digest;
        boolean known = gone;
        long began = System.nanoTime();
        long limit = timeout.compareTo(Duration.ofDays(36500)) > 0
                ? Long.MAX_VALUE : timeout.toNanos();
        AtomicBoolean told = new AtomicBoolean();
        Thread me = Thread.currentThread();
        try (Source.Hint hint = hint(() -> {
            told.set(true);
            LockSupport.unpark(me);
        })) {
            boolean renewed = false;
            for (long pause = Follower.FIRST_LOOK;; pause *= 2) {
                if (told.getAndSet(false)) {
                    pause = Follower.FIRST_LOOK;
                    renewed = false;
                }
                boolean watching = hint.isWatching(); // before the look: nothing is missed
                renewed = watching && (renewed || renewPage());
                pause = Math.min(pause, watching ? Follower.LAST_LOOK : Follower.BLIND_LOOK);
                if (hasMoved(start, known)) {
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
    }

    private boolean hasMoved(long start, boolean known) throws IOException {
        try {
            refresh();
            return image.digest != start || known;
        } catch (WithdrawnException e) {
            if (!known) {
                throw e;
            }
            return false;
        }
    }

    @Override
    public void close() {
        synchronized (moving) {
            closed = true;
            Image old = image;
            image = Image.NOTHING;
            old.retire();
            page = null;
        }
        waiting.forEach(w -> w.told().run());
    }

    private Value look(String key) {
        Image i = image;
        return i.value(i.find(key));
    }

    Image image() {
        return image;
    }

    @Override
    public Key key(String key) {
        return new Key(this, key);
    }

    @Override
    public Optional<Value> get(String key) {
        return Optional.ofNullable(look(key));
    }

    @Override
    public String getString(String key, String fallback) {
        Image i = image;
        int record = i.find(key);
        return record >= 0 && Convert.isScalar(i.type(record)) ? i.text(record) : fallback;
    }

    @Override
    public int getInt(String key, int fallback) {
        return Convert.toInt(look(key), fallback);
    }

    @Override
    public long getLong(String key, long fallback) {
        return Convert.toLong(look(key), fallback);
    }

    @Override
    public double getDouble(String key, double fallback) {
        return Convert.toDouble(look(key), fallback);
    }

    @Override
    public boolean getBoolean(String key, boolean fallback) {
        return Convert.toBoolean(look(key), fallback);
    }

    @Override
    public Duration getDuration(String key, Duration fallback) {
        return Convert.toDuration(look(key), fallback);
    }

    @Override
    public long getSize(String key, long fallback) {
        return Convert.toSize(look(key), fallback);
    }

    @Override
    public void forEach(String prefix, BiConsumer<String, Value> action) {
        image.each(prefix, action);
    }

    @Override
    public SortedMap<String, Value> entries(String prefix) {
        SortedMap<String, Value> all = new TreeMap<>();
        forEach(prefix, all::put);
        return Collections.unmodifiableSortedMap(all);
    }

    @Override
    public long generation() {
        return image.generation;
    }

    @Override
    public String version() {
        return image.version;
    }

    @Override
    public int count() {
        return image.count;
    }

    @Override
    public Optional<Duration> age() {
        Page p = page;
        return p == null ? Optional.empty() : ageOn(p);
    }

    private static Optional<Duration> ageOn(Page p) {
        long confirmed = p.confirmedMillis();
        if (confirmed == 0) {
            return Optional.empty();
        }
        long now = bootMillis();
        return now < 0 ? Optional.empty() : Optional.of(Duration.ofMillis(Math.max(0, now - confirmed)));
    }

    /** CLOCK_BOOTTIME; -1 where it cannot be read. */
    static long bootMillis() {
        try {
            String seconds = Files.readString(Path.of("/proc/uptime")).split(" ")[0];
            return Math.round(Double.parseDouble(seconds) * 1000);
        } catch (IOException | NumberFormatException e) {
            return -1;
        }
    }

    @Override
    public boolean withdrawn() {
        Page p = page;
        return p != null && p.withdrawn();
    }

    @Override
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
