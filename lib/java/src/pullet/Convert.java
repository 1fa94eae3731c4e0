package pullet;

import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What the getters make of a value, which is null where there is no such key. */
final class Convert {
    private static final Pattern INTEGER = Pattern.compile("[+-]?[0-9]+");
    private static final Pattern NUMBER =
            Pattern.compile("[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?");
    private static final String[] DURATION_UNITS = {"d", "h", "m", "s", "ms"};
    private static final long[] DURATION_FACTORS = {86_400_000, 3_600_000, 60_000, 1000, 1};
    private static final Pattern DURATION = Pattern.compile("([+-]?)([0-9]+[a-z]+){1,5}");
    private static final Pattern PART = Pattern.compile("([0-9]+)([a-z]+)");
    private static final String[] SIZE_UNITS = {"", "B", "KiB", "MiB", "GiB", "TiB"};
    private static final long[] SIZE_FACTORS = {1, 1, 1L << 10, 1L << 20, 1L << 30, 1L << 40};

    private Convert() {}

    static boolean isScalar(Value.Type type) {
        return switch (type) {
            case BOOL, INT, DOUBLE, STRING -> true;
            default -> false;
        };
    }

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
        Long n = v == null || v.type() != Value.Type.STRING ? null : duration(v.text());
        return n == null ? fallback : Duration.ofMillis(n);
    }

    /** Integers with units, the greatest first and each once; the sign in front is that of all. */
    private static Long duration(String text) {
        Matcher all = DURATION.matcher(text);
        if (!all.matches()) {
            return null;
        }
        long sum = 0;
        int unit = 0;
        try {
            for (Matcher part = PART.matcher(text); part.find(); unit++) {
                while (unit < DURATION_UNITS.length && !DURATION_UNITS[unit].equals(part.group(2))) {
                    unit++;
                }
                if (unit == DURATION_UNITS.length) {
                    return null;
                }
                long n = Long.parseLong(all.group(1) + part.group(1));
                sum = Math.addExact(sum, Math.multiplyExact(n, DURATION_FACTORS[unit]));
            }
        } catch (ArithmeticException | NumberFormatException e) {
            return null;
        }
        return sum;
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
}
