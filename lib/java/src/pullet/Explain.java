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

    /** Of a config that was named: what there is in place of its snapshot. */
    static NotPublishedException notPublished(Path path) {
        return new NotPublishedException(path + ": nothing is published under this name" + published(path));
    }

    private static String published(Path path) {
        String file = path.getFileName().toString();
        String wrong = file.substring(0, file.length() - ".snap".length());
        List<String> names;
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
                        : " yet; there is: " + String.join(", ", names));
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
