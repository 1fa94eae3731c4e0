package pullet;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** A value with what is below it. */
final class Tree {
    Value value = new Value(Value.Type.MAP, "", 0);
    final Map<String, Tree> below = new TreeMap<>();

    Tree() {}

    Tree(Value value) {
        this.value = value;
    }

    /** All that is below a key, "" = all; null when there is no such key. */
    static Tree of(Image image, String key) {
        Tree root = new Tree();
        if (!key.isEmpty()) {
            Value v = image.value(image.find(key));
            if (v == null) {
                return null;
            }
            root.value = v;
        }
        String prefix = key.isEmpty() ? "" : key + ".";
        image.each(prefix, (k, v) -> {
            Tree t = root;
            for (String s : segments(k.substring(prefix.length()))) {
                t = t.below.computeIfAbsent(s, x -> new Tree());
            }
            t.value = v;
        });
        return root;
    }

    static List<String> segments(String key) {
        List<String> all = new ArrayList<>();
        StringBuilder s = new StringBuilder();
        for (int i = 0; i < key.length(); i++) {
            char c = key.charAt(i);
            if (c == '.') {
                all.add(s.toString());
                s.setLength(0);
            } else {
                s.append(c == '\\' && i + 1 < key.length() ? key.charAt(++i) : c);
            }
        }
        all.add(s.toString());
        return all;
    }

    static String escaped(String segment) {
        return segment.replace("\\", "\\\\").replace(".", "\\.");
    }

    /** The items of a list. */
    List<Tree> items() {
        List<Tree> all = new ArrayList<>();
        for (int i = 0; i < below.size(); i++) {
            all.add(below.get(String.valueOf(i)));
        }
        return all;
    }

    /** Null, Boolean, Long, Double, String, List or Map. */
    Object plain() {
        return switch (value.type()) {
            case NULL -> null;
            case BOOL -> value.asBoolean();
            case INT -> value.asLong();
            case DOUBLE -> value.asDouble();
            case STRING -> value.text();
            case LIST -> {
                List<Object> list = new ArrayList<>();
                items().forEach(t -> list.add(t == null ? null : t.plain()));
                yield list;
            }
            case MAP -> {
                Map<String, Object> map = new LinkedHashMap<>();
                below.forEach((name, t) -> map.put(name, t.plain()));
                yield map;
            }
        };
    }
}
