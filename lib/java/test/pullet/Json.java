package pullet;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** As much of JSON as the golden files need: maps, lists, strings, null, booleans, numbers (whole ones as a Long of 64 bits). */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        return new Json(text).value();
    }

    private char next() {
        while (Character.isWhitespace(text.charAt(at)) || text.charAt(at) == ','
                || text.charAt(at) == ':') {
            at++;
        }
        return text.charAt(at);
    }

    private Object value() {
        switch (next()) {
            case '{':
                Map<String, Object> map = new LinkedHashMap<>();
                at++;
                while (next() != '}') {
                    String key = string();
                    map.put(key, value());
                }
                at++;
                return map;
            case '[':
                List<Object> list = new ArrayList<>();
                at++;
                while (next() != ']') {
                    list.add(value());
                }
                at++;
                return list;
            case '"':
                return string();
            case 'n':
                at += 4;
                return null;
            case 't':
                at += 4;
                return true;
            case 'f':
                at += 5;
                return false;
            default:
                int from = at;
                while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) {
                    at++;
                }
                return number(text.substring(from, at));
        }
    }

    private static Object number(String n) {
        if (n.contains(".") || n.contains("e")) {
            return Double.parseDouble(n);
        }
        return n.startsWith("-") ? Long.parseLong(n) : Long.parseUnsignedLong(n);
    }

    private String string() {
        StringBuilder s = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            char c = text.charAt(at);
            if (c == '\\') {
                c = text.charAt(++at);
                int plain = "nrtbf".indexOf(c);
                if (plain >= 0) {
                    c = "\n\r\t\b\f".charAt(plain);
                } else if (c == 'u') {
                    c = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
                    at += 4;
                }
            }
            s.append(c);
        }
        at++;
        return s.toString();
    }
}
