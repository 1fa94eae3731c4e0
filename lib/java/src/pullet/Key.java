package pullet;

import java.time.Duration;
import java.util.Objects;
import java.util.Optional;

/**
 * A key of one {@link Config} that is read often: it is looked up, and its text copied, once a
 * version. It moves with its config, and is as if there were no such key once that is closed. All
 * methods may be called by any number of threads at once; {@link Config#key} makes one.
 */
public final class Key {
    /** What the key has in one image; null where it has nothing. */
    private record Known(Object image, Value value) {}

    private final Config config;
    private final String name;
    private Known known = new Known(null, null); // immutable: it does not matter who sees which

    Key(Config config, String name) {
        this.config = config;
        this.name = Objects.requireNonNull(name);
    }

    private Value find() {
        Known k = known;
        Image image = config.image();
        if (k.image != image.identity) {
            k = new Known(image.identity, image.value(image.find(name)));
            known = k;
        }
        return k.value;
    }

    /**
     * The key.
     *
     * @return it
     */
    public String name() {
        return name;
    }

    /**
     * As {@link Config#get}.
     *
     * @return its value
     */
    public Optional<Value> get() {
        return Optional.ofNullable(find());
    }

    /**
     * As {@link Config#getString}.
     *
     * @param fallback what to return else
     * @return it
     */
    public String getString(String fallback) {
        return Convert.toText(find(), fallback);
    }

    /**
     * As {@link Config#getInt}.
     *
     * @param fallback what to return else
     * @return it
     */
    public int getInt(int fallback) {
        return Convert.toInt(find(), fallback);
    }

    /**
     * As {@link Config#getLong}.
     *
     * @param fallback what to return else
     * @return it
     */
    public long getLong(long fallback) {
        return Convert.toLong(find(), fallback);
    }

    /**
     * As {@link Config#getDouble}.
     *
     * @param fallback what to return else
     * @return it
     */
    public double getDouble(double fallback) {
        return Convert.toDouble(find(), fallback);
    }

    /**
     * As {@link Config#getBoolean}.
     *
     * @param fallback what to return else
     * @return it
     */
    public boolean getBoolean(boolean fallback) {
        return Convert.toBoolean(find(), fallback);
    }

    /**
     * As {@link Config#getDuration}.
     *
     * @param fallback what to return else
     * @return it
     */
    public Duration getDuration(Duration fallback) {
        return Convert.toDuration(find(), fallback);
    }

    /**
     * As {@link Config#getSize}.
     *
     * @param fallback what to return else
     * @return it
     */
    public long getSize(long fallback) {
        return Convert.toSize(find(), fallback);
    }
}
