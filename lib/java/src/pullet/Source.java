package pullet;

import java.io.IOException;
import java.nio.file.Path;

/** Where the image and the page of a config are: two files, or the memory of a fake. */
interface Source {
    /** The newest image. */
    Image load() throws IOException;

    /** What tells one image from the next, without reading it. */
    Object stamp() throws IOException;

    /** The page that is there now; `have`, where that is it, or nothing is. */
    Page pageAfter(Page have);

    /** Hears of changes, by a call of `told` in some thread; closed when it shall not any more. */
    Hint hint(Runnable told);

    /** What hears of changes. */
    interface Hint extends AutoCloseable {
        /** False when it hears nothing now; asked again and again, for that can change. */
        boolean isWatching();

        @Override
        void close();
    }

    /** The two files. */
    record Files(Path path, Path pagePath) implements Source {
        static Files of(Path path) {
            Path file = path.getFileName();
            String name = file == null ? "" : file.toString();
            String stem = name.length() > 5 && name.endsWith(".snap")
                    ? name.substring(0, name.length() - 5) : name;
            return new Files(path, path.resolveSibling(stem + ".gen"));
        }

        @Override
        public Image load() throws IOException {
            return Image.load(path);
        }

        @Override
        public Object stamp() throws IOException {
            return Image.stampOf(path);
        }

        @Override
        public Page pageAfter(Page have) {
            if (have == null || !have.isAt(pagePath)) { // one that was removed is another one now
                Page there = Page.open(pagePath);
                return there == null ? have : there;
            }
            return have;
        }

        @Override
        public Hint hint(Runnable told) {
            return new Watcher.FileHint(path, pagePath, told);
        }
    }
}
