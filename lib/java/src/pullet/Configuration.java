package pullet;

import java.io.IOException;
import java.time.Duration;
import java.util.Optional;
import java.util.SortedMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;

/**
 * What an application reads its configuration through: a {@link Config}, or a {@link FakeConfig} in
 * its tests.
 *
 * <p>A key is its segments joined with '.', as in {@code servers.0.host}; a dot in a segment is
 * written {@code \.} and a backslash {@code \\}. The typed methods return the fallback when there is
 * no such key or its value is not of the type. All methods may be called by any number of threads at
 * once.
 */
public interface Configuration extends AutoCloseable {
    /**
     * Moves to the newest version; when there is nothing newer it costs one load. After an exception
     * the version that is open stays in use. {@link WithdrawnException} is thrown each time until the
     * config comes back: whether to go on with the last values is for the application to decide.
     *
     * @return whether it moved
     * @throws IOException as {@link Config#open(String)}
     * @throws IllegalStateException when it was closed
     */
    boolean refresh() throws IOException;

    /**
     * Waits until there is a newer version than the one that is open, and moves to it. The thread
     * sleeps: a watch of the directory (inotify) wakes it within a millisecond or two. Where there is
     * none (no more descriptors, or no directory yet) it looks ten times a second.
     * {@link WithdrawnException} is thrown once; the next call, or one after a refresh
     * that threw it, waits for the config to come back.
     *
     * @param timeout how long at most
     * @return whether it moved; false when the time has passed
     * @throws IOException as {@link #refresh}
     * @throws InterruptedException when the thread was interrupted
     * @throws IllegalStateException when it was closed, also while it waits
     */
    boolean await(Duration timeout) throws IOException, InterruptedException;

    /**
     * Completes when there is something newer than what is open, and moves nothing: call
     * {@link #refresh} where it suits. No thread of the caller waits. It may complete once too often,
     * never too seldom. A loop asks for another one after each refresh:
     *
     * <pre>{@code
     * void follow() { // in the event loop
     *     config.nextChange().thenRunAsync(() -> {
     *         refresh(config);
     *         follow();
     *     }, loop);
     * }
     * }</pre>
     *
     * <p>Cancel it when it is of no use any more: until then it is looked after. What depends on it
     * without an executor runs in a thread that all of them share, and must not block.
     *
     * @return it; it fails with an IllegalStateException when this is closed
     */
    CompletableFuture<Void> nextChange();

    /**
     * Names a key that is read often; it need not be there.
     *
     * @param key the key
     * @return it
     */
    Key key(String key);

    /** Changes what {@link #as} does. */
    enum Option {
        /** Keys that the record has no component for are problems, too. */
        STRICT
    }

    /**
     * Makes a record (or a {@code Map}) of the version that is open. A component has the name of its
     * key, or that in snake_case ({@code maxConns}: {@code max_conns}), or the one that {@link Setting}
     * gives it, and one of these types: the primitive ones and their boxes, String, BigInteger,
     * BigDecimal, Duration ({@code 10s}), an enum (by its name, in capitals or not), another record,
     * List, Map with String keys, Optional, {@link Value}, and Object (null, Boolean, Long, Double,
     * String, List or Map). Values are converted as the getters do.
     *
     * <pre>{@code
     * record Db(String host, @Setting(fallback = "5432") int port) {}
     * record Settings(Db db, @Setting(fallback = "10s") Duration timeout, List<String> hosts,
     *         @Setting(fallback = "1MiB", size = true) long maxBody, Optional<String> note) {}
     * Settings settings = config.as(Settings.class);
     * }</pre>
     *
     * <p>What is missing or null is the {@link Setting#fallback}, an empty Optional, List or Map, a
     * record of an empty mapping, and else a problem. What a record's constructor throws is one, too. Keys without a component are
     * ignored but with {@link Option#STRICT}.
     *
     * @param <T> the record
     * @param type the record
     * @param options what to do otherwise
     * @return it
     * @throws MismatchException with all problems, when the configuration does not fit it
     * @throws IllegalArgumentException when a type is not one of these, or not accessible
     */
    <T> T as(Class<T> type, Option... options) throws MismatchException;

    /**
     * As {@link #as(Class, Option...)}, of what is below a key.
     *
     * @param <T> the record
     * @param key the key
     * @param type the record
     * @param options what to do otherwise
     * @return it
     * @throws MismatchException with all problems, when the configuration does not fit it
     * @throws IllegalArgumentException when a type is not one of these, or not accessible
     */
    <T> T as(String key, Class<T> type, Option... options) throws MismatchException;

    /**
     * Looks a key up.
     *
     * @param key the key
     * @return its value
     */
    Optional<Value> get(String key);

    /**
     * Any scalar but null, as it was written.
     *
     * @param key the key
     * @param fallback what to return else
     * @return it
     */
    String getString(String key, String fallback);

    /**
     * As {@link #getLong}, when it fits an int.
     *
     * @param key the key
     * @param fallback what to return else
     * @return it
     */
    int getInt(String key, int fallback);

    /**
     * An integer, or a string that is one, whole.
     *
     * @param key the key
     * @param fallback what to return else
     * @return it
     */
    long getLong(String key, long fallback);

    /**
     * A number, or a string that is one in decimal.
     *
     * @param key the key
     * @param fallback what to return else
     * @return it
     */
    double getDouble(String key, double fallback);

    /**
     * True or false, or a string that is one of these words.
     *
     * @param key the key
     * @param fallback what to return else
     * @return it
     */
    boolean getBoolean(String key, boolean fallback);

    /**
     * A string like "500ms", "10s", "5m", "1h" or "2d".
     *
     * @param key the key
     * @param fallback what to return else
     * @return it
     */
    Duration getDuration(String key, Duration fallback);

    /**
     * A string like "64KiB" or "8MiB", or an integer, in bytes.
     *
     * @param key the key
     * @param fallback what to return else
     * @return it
     */
    long getSize(String key, long fallback);

    /**
     * Calls for each key that begins with a prefix, in the order of the keys' bytes.
     *
     * @param prefix the prefix; "" = all
     * @param action takes a key and its value
     */
    void forEach(String prefix, BiConsumer<String, Value> action);

    /**
     * A copy of all that begins with a prefix, in the order of {@link String#compareTo}.
     *
     * @param prefix the prefix; "" = all
     * @return a map that cannot be changed
     */
    SortedMap<String, Value> entries(String prefix);

    /**
     * The generation that is open, 64 bits without a sign.
     *
     * @return it; 0 when nothing is yet
     */
    long generation();

    /**
     * The server's name for the version that is open (ETag or revision).
     *
     * @return it; "" when it gave none or nothing is open
     */
    String version();

    /**
     * The number of keys.
     *
     * @return it
     */
    int count();

    /**
     * The time since the server last confirmed the newest version, suspend included. The clock is
     * /proc/uptime, which is CLOCK_BOOTTIME in steps of 10 ms; a container whose /proc/uptime is
     * not the kernel's (lxcfs) gets a wrong age.
     *
     * @return it; empty when the server did not confirm since the agent started, or there is no
     *     control page beside the snapshot
     */
    Optional<Duration> age();

    /**
     * Whether the agent publishes this config no more, since it was removed or says
     * {@code snapshot: false}; as it is now, without a refresh.
     *
     * @return whether it is so
     */
    boolean withdrawn();

    /**
     * Whether the age is not known, or has reached what the agent calls stale: longer than its
     * longest delay between two pulls.
     *
     * @return whether it is so
     */
    boolean stale();

    /** Lets go of the version that is open: everything is as if empty from then on. */
    @Override
    void close();
}
