package pullet;

import java.io.IOException;
import java.nio.file.ClosedWatchServiceException;
import java.nio.file.FileSystems;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchEvent;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * One watch service (an inotify descriptor, of which a user has 128) and one thread of the process
 * for all hints, while there are any.
 */
final class Watcher {
    private static final Map<WatchKey, Set<FileHint>> HINTS = new HashMap<>();
    private static WatchService service; // null while nobody waits

    private Watcher() {}

    /** Hears of two files in one directory. */
    static final class FileHint implements Source.Hint {
        private final Path directory;
        private final Set<Path> names;
        private final Runnable told;
        private WatchKey key; // guarded by the class Watcher; null = not watched
        private boolean closed;

        FileHint(Path file, Path other, Runnable told) {
            directory = file.toAbsolutePath().getParent();
            names = Set.of(file.getFileName(), other.getFileName());
            this.told = told;
        }

        @Override
        public boolean isWatching() {
            return add(this);
        }

        @Override
        public void close() {
            remove(this);
        }
    }

    private static synchronized boolean add(FileHint h) {
        if (h.key != null || h.closed || h.directory == null) {
            return h.key != null;
        }
        try {
            if (service == null) {
                service = FileSystems.getDefault().newWatchService();
                WatchService mine = service;
                Thread thread = new Thread(() -> run(mine), "pullet-watch");
                thread.setDaemon(true);
                thread.start();
            }
            h.key = h.directory.register(service, StandardWatchEventKinds.ENTRY_CREATE,
                    StandardWatchEventKinds.ENTRY_DELETE); // a rename is one, too
        } catch (IOException e) { // no such directory, or no more descriptors
            closeUnused();
            return false;
        }
        HINTS.computeIfAbsent(h.key, k -> new HashSet<>()).add(h);
        return true;
    }

    private static synchronized void remove(FileHint h) {
        h.closed = true;
        Set<FileHint> there = h.key == null ? null : HINTS.get(h.key);
        if (there != null) {
            there.remove(h);
            if (there.isEmpty()) {
                HINTS.remove(h.key);
                h.key.cancel();
            }
        }
        h.key = null;
        closeUnused();
    }

    private static void closeUnused() {
        if (HINTS.isEmpty() && service != null) {
            try {
                service.close(); // ends its thread
            } catch (IOException e) {
                // it is of no use any more, either way
            }
            service = null;
        }
    }

    private static void run(WatchService mine) {
        try {
            for (;;) {
                for (FileHint h : concerned(mine.take())) { // without the lock: they have their own
                    h.told.run();
                }
            }
        } catch (ClosedWatchServiceException | InterruptedException e) {
            // nobody waits
        }
    }

    /** Whose files an event is of; all of a directory where that is gone, which is looked for again. */
    private static synchronized List<FileHint> concerned(WatchKey key) {
        Set<FileHint> all = HINTS.getOrDefault(key, Set.of());
        Set<Object> names = new HashSet<>();
        boolean overflow = false;
        for (WatchEvent<?> e : key.pollEvents()) {
            overflow |= e.kind() == StandardWatchEventKinds.OVERFLOW;
            names.add(e.context());
        }
        boolean gone = !key.reset();
        List<FileHint> concerned = new ArrayList<>();
        for (FileHint h : all) {
            if (overflow || gone || h.names.stream().anyMatch(names::contains)) {
                concerned.add(h);
            }
            if (gone) {
                h.key = null;
            }
        }
        if (gone) {
            HINTS.remove(key);
        }
        return concerned;
    }
}
