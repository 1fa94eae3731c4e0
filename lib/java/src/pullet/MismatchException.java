package pullet;

import java.io.IOException;
import java.util.List;

/**
 * The configuration does not fit the record of {@link Configuration#as}: the message names the file,
 * the generation and each key. It tells no values: they may be secret.
 */
public final class MismatchException extends IOException {
    private static final long serialVersionUID = 1;
    private static final int MOST = 8;

    /**
     * What is wrong with one key.
     *
     * @param key the key
     * @param detail what is wrong: "must be an integer such as 17 that fits int, but is a list"
     */
    public record Problem(String key, String detail) {}

    private final transient String path;
    private final transient long generation;
    private final transient String version;
    private final transient List<Problem> problems;

    MismatchException(String path, long generation, String version, List<Problem> problems) {
        super(text(path, generation, problems));
        this.path = path;
        this.generation = generation;
        this.version = version;
        this.problems = List.copyOf(problems);
    }

    /** Nothing is open, which is why all is missing. */
    MismatchException(String path, String why, List<Problem> problems) {
        super(why);
        this.path = path;
        this.generation = 0;
        this.version = "";
        this.problems = List.copyOf(problems);
    }

    private static String text(String path, long generation, List<Problem> problems) {
        StringBuilder s = new StringBuilder(path).append(", generation ")
                .append(Long.toUnsignedString(generation));
        String between = ": ";
        for (Problem p : problems.subList(0, Math.min(MOST, problems.size()))) {
            s.append(between).append(p.key).append(' ').append(p.detail);
            between = "; ";
        }
        return problems.size() <= MOST ? s.toString()
                : s.append("; and ").append(problems.size() - MOST).append(" more").toString();
    }

    /**
     * The snapshot's file.
     *
     * @return it
     */
    public String path() {
        return path;
    }

    /**
     * The generation.
     *
     * @return it
     */
    public long generation() {
        return generation;
    }

    /**
     * The server's version.
     *
     * @return it
     */
    public String version() {
        return version;
    }

    /**
     * All that is wrong.
     *
     * @return it
     */
    public List<Problem> problems() {
        return problems;
    }
}
