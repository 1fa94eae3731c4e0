package pullet;

/** The agent publishes this config no more: it was removed, or says {@code snapshot: false}. */
public final class WithdrawnException extends NotPublishedException {
    private static final long serialVersionUID = 1;

    WithdrawnException(String message) {
        super(message);
    }
}
