package pullet;

/**
 * One value, a copy: it stays good after the config has moved on or was closed.
 *
 * @param type its type, as it was written in the configuration
 * @param text as it was written; empty for null, list and map
 * @param raw the 64 bits of the value: see the methods
 */
public record Value(Type type, String text, long raw) {
    /** The types of values, in the order of their codes. */
    public enum Type {
        /** Nothing. */
        NULL,
        /** True or false. */
        BOOL,
        /** A whole number of 64 bits. */
        INT,
        /** A number of IEEE 754 binary64. */
        DOUBLE,
        /** A text. */
        STRING,
        /** A list: its items have keys of their own. */
        LIST,
        /** A map: its members have keys of their own. */
        MAP
    }

    /** The value of a BOOL, else false.
     *
     * @return it */
    public boolean asBoolean() {
        return type == Type.BOOL && raw != 0;
    }

    /** The value of an INT, else 0.
     *
     * @return it */
    public long asLong() {
        return type == Type.INT ? raw : 0;
    }

    /** The value of a DOUBLE or INT, else 0.
     *
     * @return it */
    public double asDouble() {
        return type == Type.DOUBLE ? Double.longBitsToDouble(raw) : asLong();
    }

    /** The number of items of a LIST or members of a MAP, else 0.
     *
     * @return it */
    public long count() {
        return type == Type.LIST || type == Type.MAP ? raw : 0;
    }
}
