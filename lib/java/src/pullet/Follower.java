package pullet;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Completes a future when its config has something newer than what is open. A hint says that a file
 * was renamed, and the page says it a moment later: so a hint only starts the looks again, in
 * intervals that double from FIRST_LOOK on; LAST_LOOK bounds what a lost event could cost.
 */
final class Follower implements Runnable {
    static final long FIRST_LOOK = 50_000; // nanoseconds
    static final long LAST_LOOK = 10_000_000_000L;
    static final long BLIND_LOOK = 100_000_000; // the longest interval without a watch

    /** Its one thread ends a second after the last future. */
    private static final ScheduledThreadPoolExecutor LOOKS = new ScheduledThreadPoolExecutor(1, r -> {
        Thread thread = new Thread(r, "pullet-wait");
        thread.setDaemon(true);
        return thread;
    });

    static {
        LOOKS.setKeepAliveTime(1, TimeUnit.SECONDS);
        LOOKS.allowCoreThreadTimeOut(true);
        LOOKS.setRemoveOnCancelPolicy(true);
    }

    final CompletableFuture<Void> future = new CompletableFuture<>();
    private final Config config;
    private final Source.Hint hint;
    private long pause = FIRST_LOOK;
    private boolean renewed;
    private Future<?> next;

    Follower(Config config) {
        this.config = config;
        hint = config.hint(this::told);
        future.whenComplete((nothing, e) -> stop()); // it may have been cancelled
    }

    private synchronized void stop() {
        hint.close();
        if (next != null) {
            next.cancel(false);
        }
    }

    void begin() {
        told();
    }

    private synchronized void told() {
        pause = FIRST_LOOK;
        renewed = false;
        if (next == null || next.cancel(false)) { // else it is looking, and looks again
            next = LOOKS.submit(this);
        }
    }

    @Override
    public void run() {
        if (future.isDone()) {
            return;
        }
        // A closed one sets no watch: the last watch takes the system milliseconds to end, and this
        // thread is everybody's.
        if (!config.isClosed() && !isNewer()) {
            return;
        }
        if (config.isClosed()) {
            future.completeExceptionally(new IllegalStateException("the config was closed"));
        } else {
            future.complete(null);
        }
    }

    /** Whether there is something newer, or it was closed; looks again later if not. */
    private synchronized boolean isNewer() {
        boolean watching = hint.isWatching(); // before the look: nothing is missed
        renewed = watching && (renewed || config.renewPage());
        long longest = watching ? LAST_LOOK : BLIND_LOOK;
        try {
            if (config.isNewer()) {
                return true;
            }
        } catch (IllegalStateException e) {
            return true;
        }
        next = LOOKS.schedule(this, Math.min(pause, longest), TimeUnit.NANOSECONDS);
        pause = Math.min(2 * pause, longest);
        return false;
    }
}
