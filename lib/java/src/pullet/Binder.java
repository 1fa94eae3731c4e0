package pullet;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** Makes records of a tree of values, and notes all that does not fit. */
final class Binder {
    /** A value that no configuration has: what a conversion gives in its place did not fit. */
    private static final Object NONE = new Object();

    private static final List<String> IN_WORDS = List.of("null", "true or false", "an integer",
            "a number", "a text", "a list", "a mapping");

    private final boolean strict;
    private final List<MismatchException.Problem> problems = new ArrayList<>();
    /** Missing, and taken as empty: one in itself has no end. */
    private final Set<Class<?>> assumed = new HashSet<>();

    Binder(boolean strict) {
        this.strict = strict;
    }

    List<MismatchException.Problem> problems() {
        return problems;
    }

    Object bind(Tree tree, String key, Class<?> type) {
        if (!type.isRecord() && type != Map.class) {
            throw new IllegalArgumentException(type.getName() + " is neither a record nor Map");
        }
        if (tree == null) {
            wrong(key, "is missing");
            return null;
        }
        Object made = type == Map.class ? tree.plain() : make(tree, key, type, false);
        return made == NONE ? null : made;
    }

    private void wrong(String key, String detail) {
        problems.add(new MismatchException.Problem(key, detail));
    }

    private static String join(String key, String segment) {
        return key.isEmpty() ? Tree.escaped(segment) : key + "." + Tree.escaped(segment);
    }

    private Object mismatch(Tree t, String key, String needed) {
        Value.Type type = t.value.type();
        String is = IN_WORDS.get(type.ordinal());
        if (type == Value.Type.STRING && needed.startsWith("one of ")) {
            is = "another text";
        } else if (type == Value.Type.STRING && !needed.equals("a list") && !needed.equals("a mapping")) {
            is += " of another form";
        } else if (type.compareTo(Value.Type.STRING) < 0 && needed.startsWith(is)
                || type == Value.Type.INT && needed.startsWith("a size")) {
            is += " that does not fit";
        }
        wrong(key, "must be " + needed + ", but is " + is);
        return NONE;
    }

    private static boolean isMissing(Tree t) {
        return t == null || t.value.type() == Value.Type.NULL;
    }

    /** A component's, item's or member's value; NONE after a problem. */
    private Object make(Tree t, String key, Type type, boolean size) {
        Class<?> raw = type instanceof ParameterizedType p ? (Class<?>) p.getRawType()
                : type instanceof Class<?> c ? c : null;
        if (raw == Optional.class) {
            if (isMissing(t)) {
                return Optional.empty();
            }
            Object made = make(t, key, argument(type, 0, key), size);
            return made == NONE ? NONE : Optional.of(made);
        }
        if (raw == Object.class || raw == Value.class) {
            return t == null ? nothing(key, "is missing") : raw == Value.class ? t.value : t.plain();
        }
        if (isMissing(t) && raw != null && raw.isRecord() && assumed.add(raw)) { // as an empty one
            Object made = record(new Tree(new Value(Value.Type.MAP, "", 0)), key, raw);
            assumed.remove(raw);
            return made;
        }
        if (isMissing(t)) {
            return raw == List.class ? List.of() : raw == Map.class ? Map.of() : t == null ? nothing(key, "is missing")
                    : nothing(key, "is null");
        }
        if (raw == List.class) {
            return list(t, key, argument(type, 0, key), size);
        }
        if (raw == Map.class) {
            if (type instanceof ParameterizedType && argument(type, 0, key) != String.class) {
                throw unsupported(type, key);
            }
            return map(t, key, type instanceof Class ? Object.class : argument(type, 1, key), size);
        }
        if (raw == null) {
            throw unsupported(type, key);
        }
        return raw.isRecord() ? record(t, key, raw) : scalar(t, key, raw, size);
    }

    private Object nothing(String key, String how) {
        wrong(key, how);
        return NONE;
    }

    private static IllegalArgumentException unsupported(Type type, String key) {
        return new IllegalArgumentException(key + ": a component of type " + type.getTypeName()
                + " cannot be filled");
    }

    private static Type argument(Type type, int n, String key) {
        if (type instanceof ParameterizedType p) {
            return p.getActualTypeArguments()[n];
        }
        throw unsupported(type, key);
    }

    private Object list(Tree t, String key, Type item, boolean size) {
        if (t.value.type() != Value.Type.LIST) {
            return mismatch(t, key, "a list");
        }
        List<Object> all = new ArrayList<>();
        for (Tree each : t.items()) {
            all.add(make(each, join(key, String.valueOf(all.size())), item, size));
        }
        return all.contains(NONE) ? NONE : Collections.unmodifiableList(all);
    }

    private Object map(Tree t, String key, Type member, boolean size) {
        if (t.value.type() != Value.Type.MAP) {
            return mismatch(t, key, "a mapping");
        }
        Map<String, Object> all = new LinkedHashMap<>();
        t.below.forEach((name, each) -> all.put(name, make(each, join(key, name), member, size)));
        return all.containsValue(NONE) ? NONE : Collections.unmodifiableMap(all);
    }

    private Object record(Tree t, String key, Class<?> type) {
        if (t.value.type() != Value.Type.MAP) {
            return mismatch(t, key, "a mapping");
        }
        RecordComponent[] components = type.getRecordComponents();
        Object[] arguments = new Object[components.length];
        Class<?>[] types = new Class<?>[components.length];
        Set<String> known = new HashSet<>();
        Map<Integer, String> missing = new LinkedHashMap<>(); // which problem says that a name is
        boolean good = true;
        for (int i = 0; i < components.length; i++) {
            int before = problems.size();
            types[i] = components[i].getType();
            String name = name(t, components[i]);
            known.add(name);
            arguments[i] = component(t, key, components[i], name);
            good &= arguments[i] != NONE;
            if (arguments[i] == NONE && !t.below.containsKey(name)) {
                missing.put(before, name);
            }
        }
        missing.forEach((problem, name) -> guess(problem, t, name, known, key));
        for (String name : t.below.keySet()) {
            if (strict && !known.contains(name)) {
                wrong(join(key, name), "is not known" + known.stream().sorted().filter(k -> name.length() >= 3
                        && !t.below.containsKey(k) && isNear(k, name)).findFirst()
                        .map(k -> ": did you mean " + join(key, k) + "?").orElse(""));
            }
        }
        return good ? construct(key, type, types, arguments) : NONE;
    }

    /** Names what may have been meant by a missing name: what is beside it, and no component has. */
    private void guess(int problem, Tree t, String name, Set<String> known, String key) {
        MismatchException.Problem p = problems.get(problem);
        if (!p.detail().equals("is missing")) {
            return; // its fallback does not fit
        }
        t.below.keySet().stream().sorted().filter(n -> name.length() >= 3 && !known.contains(n)
                && n.chars().allMatch(c -> c > ' ' && c != 0x7f) && isNear(n, name)).findFirst().ifPresent(n ->
                problems.set(problem, new MismatchException.Problem(p.key(),
                        p.detail() + ": did you mean " + join(key, n) + "?")));
    }

    /** One character more, less or another one, or two swapped; not counting case, '-' and '_'. */
    static boolean isNear(String one, String other) {
        String a = one.replaceAll("[-_]", "").toLowerCase(Locale.ROOT);
        String b = other.replaceAll("[-_]", "").toLowerCase(Locale.ROOT);
        int i = 0;
        int m = a.length();
        int n = b.length();
        while (i < m && i < n && a.charAt(i) == b.charAt(i)) {
            i++;
        }
        while (m > i && n > i && a.charAt(m - 1) == b.charAt(n - 1)) {
            m--;
            n--;
        }
        return m - i <= 1 && n - i <= 1 || m - i == 2 && n - i == 2
                && a.charAt(i) == b.charAt(i + 1) && a.charAt(i + 1) == b.charAt(i);
    }

    private static String name(Tree t, RecordComponent c) {
        Setting s = c.getAnnotation(Setting.class);
        if (s != null && !s.value().isEmpty()) {
            return s.value();
        }
        String snake = snake(c.getName());
        return !t.below.containsKey(c.getName()) && t.below.containsKey(snake) ? snake : c.getName();
    }

    private Object component(Tree t, String key, RecordComponent c, String name) {
        Setting s = c.getAnnotation(Setting.class);
        Tree there = t.below.get(name);
        if (isMissing(there) && s != null && !s.fallback().isEmpty()) {
            there = new Tree(new Value(Value.Type.STRING, s.fallback(), 0));
        }
        return make(there, join(key, name), c.getGenericType(), s != null && s.size());
    }

    /** Makes max_conns of maxConns, db_host of dbHost, user_id of userID. */
    static String snake(String name) {
        return name.replaceAll("([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])", "$1$3_$2$4")
                .toLowerCase(Locale.ROOT);
    }

    private Object construct(String key, Class<?> type, Class<?>[] types, Object[] arguments) {
        try {
            Constructor<?> c = type.getDeclaredConstructor(types);
            c.setAccessible(true); // of a private record, too
            return c.newInstance(arguments);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof Error error) {
                throw error;
            }
            wrong(key, "is rejected: " + (e.getCause().getMessage() == null ? e.getCause()
                    : e.getCause().getMessage()));
            return NONE;
        } catch (ReflectiveOperationException | RuntimeException e) {
            throw new IllegalArgumentException(type.getName() + " is not accessible: make it public and"
                    + " export its package, or open that to the module pullet", e);
        }
    }

    private interface Getter<T> {
        T get(T fallback);
    }

    /** What a getter makes of a value; NONE where it gives the fallback. */
    private static <T> Object unlessFallback(Getter<T> getter, T one, T other) {
        T got = getter.get(one);
        return got.equals(one) && getter.get(other).equals(other) ? NONE : got;
    }

    private Object scalar(Tree t, String key, Class<?> raw, boolean size) {
        Value v = t.value;
        if (raw == String.class) {
            return Convert.isScalar(v.type()) ? v.text() : mismatch(t, key, "a text");
        }
        if (raw == boolean.class || raw == Boolean.class) {
            return checked(t, key, "true or false",
                    unlessFallback(f -> Convert.toBoolean(v, f), true, false));
        }
        if (raw == Duration.class) {
            return checked(t, key, "a duration such as 10s or 1h30m",
                    unlessFallback(f -> Convert.toDuration(v, f), Duration.ZERO, Duration.ofMillis(1)));
        }
        if (raw.isEnum()) {
            String wanted = v.text().replace('-', '_');
            for (Object constant : raw.getEnumConstants()) {
                if (Convert.isScalar(v.type()) && ((Enum<?>) constant).name().equalsIgnoreCase(wanted)) {
                    return constant;
                }
            }
            StringBuilder names = new StringBuilder();
            for (Object constant : raw.getEnumConstants()) {
                names.append(names.length() == 0 ? "" : ", ").append(((Enum<?>) constant).name());
            }
            return mismatch(t, key, "one of " + names);
        }
        if (raw == double.class || raw == Double.class || raw == float.class || raw == Float.class) {
            Object d = unlessFallback(f -> Convert.toDouble(v, f), 0.0, 1.0);
            if (d != NONE && (raw == float.class || raw == Float.class)) {
                float f = ((Double) d).floatValue();
                d = Float.isInfinite(f) && !((Double) d).isInfinite() ? NONE : (Object) f;
            }
            return checked(t, key, "a number such as 0.5 that fits " + raw.getSimpleName(), d);
        }
        if (raw == BigDecimal.class || raw == BigInteger.class) {
            return big(t, key, raw);
        }
        return integer(t, key, raw, size);
    }

    private Object checked(Tree t, String key, String needed, Object made) {
        return made == NONE ? mismatch(t, key, needed) : made;
    }

    private Object big(Tree t, String key, Class<?> raw) {
        String needed = raw == BigDecimal.class ? "a number such as 0.5" : "an integer such as 17";
        try {
            if (Convert.isScalar(t.value.type()) && t.value.type() != Value.Type.BOOL) {
                return raw == BigInteger.class && t.value.type() == Value.Type.INT
                        ? (Object) BigInteger.valueOf(t.value.asLong())
                        : raw == BigInteger.class ? new BigInteger(t.value.text())
                        : t.value.type() == Value.Type.INT ? BigDecimal.valueOf(t.value.asLong())
                        : new BigDecimal(t.value.text());
            }
        } catch (NumberFormatException e) {
            // told below
        }
        return mismatch(t, key, needed);
    }

    private Object integer(Tree t, String key, Class<?> raw, boolean size) {
        Object n = size ? unlessFallback(f -> Convert.toSize(t.value, f), 0L, 1L)
                : unlessFallback(f -> Convert.toLong(t.value, f), 0L, 1L);
        long l = n == NONE ? 0 : (Long) n;
        Object made;
        if (raw == long.class || raw == Long.class) {
            made = l;
        } else if (raw == int.class || raw == Integer.class) {
            made = l == (int) l ? (Object) (int) l : NONE;
        } else if (raw == short.class || raw == Short.class) {
            made = l == (short) l ? (Object) (short) l : NONE;
        } else if (raw == byte.class || raw == Byte.class) {
            made = l == (byte) l ? (Object) (byte) l : NONE;
        } else {
            throw unsupported(raw, key);
        }
        return checked(t, key, (size ? "a size such as 64KiB" : "an integer such as 17") + " that fits "
                + raw.getSimpleName(), n == NONE ? NONE : made);
    }
}
