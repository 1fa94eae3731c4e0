package pullet;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.util.List;
import java.util.stream.Stream;

/**
 * What an error of opening a config is here, and what to do. It looks at the directory again; what it
 * says may have changed meanwhile.
 */
final class Explain {
    private static final int FEW = 4;
    private static final int MOST_READ = 4096;

    private Explain() {}

    /** Where names are looked for. */
    static Path runtimeDirectory() {
        String directory = System.getenv("PULLET_RUNTIME_DIR");
        return Path.of(directory == null || directory.isEmpty() ? "/run/pullet" : directory);
    }

    /** Why nothing is open of a path. */
    static String empty(Path path, boolean withdrawn) {
        return withdrawn ? path + ": withdrawn: the agent publishes this config no more, for it was removed or says"
                + " `snapshot: false`"
                : runtimeDirectory().equals(path.getParent()) ? notPublished(path).getMessage()
                : path + ": nothing is published: there is no snapshot at this path";
    }

    /** The directory in which an agent that this user has started publishes it, or null. */
    private static Path ownAgents(Path path) {
        if (System.getenv("PULLET_RUNTIME_DIR") != null || "root".equals(System.getProperty("user.name"))) {
            return null;
        }
        String home = System.getenv("HOME");
        for (Path each : new Path[] {below(System.getenv("XDG_RUNTIME_DIR"), "pullet"),
                below(System.getenv("XDG_STATE_HOME"), "pullet-run"), below(home, ".local/state/pullet-run")}) {
            if (each != null && each.isAbsolute() && Files.exists(each.resolve(path.getFileName()))) {
                return each;
            }
        }
        return null;
    }

    private static Path below(String base, String name) {
        return base == null || base.isEmpty() ? null : Path.of(base, name);
    }

    /** Of a config that was named: what there is in place of its snapshot. */
    static NotPublishedException notPublished(Path path) {
        return new NotPublishedException(path + ": nothing is published under this name" + published(path));
    }

    private static String published(Path path) {
        String file = path.getFileName().toString();
        String wrong = file.substring(0, file.length() - ".snap".length());
        List<String> names;
        Path own = ownAgents(path);
        if (own != null) {
            return ": your own agent publishes it in " + own + ": set PULLET_RUNTIME_DIR=" + own;
        }
        try (Stream<Path> all = Files.list(path.getParent())) {
            names = all.limit(MOST_READ).map(p -> p.getFileName().toString())
                    .filter(n -> n.endsWith(".snap") && !n.startsWith(".")).map(n -> n.substring(0, n.length() - 5))
                    .filter(n -> !n.equals(wrong)).toList();
        } catch (NoSuchFileException e) {
            return ": there is no directory " + path.getParent()
                    + ": is the agent running? PULLET_RUNTIME_DIR names another one";
        } catch (IOException | RuntimeException e) {
            return ": " + e;
        }
        return names.stream().filter(n -> wrong.length() >= 3 && Binder.isNear(n, wrong)).findFirst()
                .map(n -> ": did you mean '" + n + "'?").orElse(names.isEmpty() ? ", nor under any: is the agent running?"
                        : names.size() > FEW ? " yet: 'pullet status --names' lists what there is"
                        : " yet (there is " + String.join(", ", names) + ")");
    }

    /** Names the group of a file, or of the directory around it that is closed. */
    static AccessDeniedException denied(Path path) {
        Path at = path.toAbsolutePath();
        while (at.getParent() != null && !Files.exists(at)) {
            at = at.getParent();
        }
        String who = "";
        try {
            PosixFileAttributes of = Files.readAttributes(at, PosixFileAttributes.class);
            String group = of.group().getName();
            if (!group.equals("root") && of.permissions().contains(of.isDirectory()
                    ? PosixFilePermission.GROUP_EXECUTE : PosixFilePermission.GROUP_READ)) {
                who = at + " may be read by the group " + group + " only: add this program's user to it (usermod -aG "
                        + group + " USER), and start the program again";
            }
        } catch (IOException | UnsupportedOperationException e) {
            // said below
        }
        return new AccessDeniedException(path.toString(), null,
                who.isEmpty() ? at + " may be read by root and the agent's user only" : who);
    }
}
