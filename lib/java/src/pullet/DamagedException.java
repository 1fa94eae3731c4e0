package pullet;

import java.io.IOException;

/** The snapshot is damaged; the version that is open stays in use. */
public final class DamagedException extends IOException {
    private static final long serialVersionUID = 1;

    DamagedException(String message) {
        super(message);
    }
}
