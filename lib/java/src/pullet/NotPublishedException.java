package pullet;

import java.io.IOException;

/** Nothing is published under this name or path yet. */
public class NotPublishedException extends IOException {
    private static final long serialVersionUID = 1;

    NotPublishedException(String message) {
        super(message);
    }
}
