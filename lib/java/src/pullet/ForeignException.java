package pullet;

import java.io.IOException;

/** Not a snapshot, or one of a layout that this library does not know. */
public final class ForeignException extends IOException {
    private static final long serialVersionUID = 1;

    ForeignException(String message) {
        super(message);
    }
}
