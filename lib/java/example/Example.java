import java.io.IOException;
import java.time.Duration;
import pullet.Config;
import pullet.NotPublishedException;

/** Reads some values of the config "web" (or the one named) and follows it for a minute. */
public final class Example {
    private Example() {}

    /**
     * Runs it.
     *
     * @param args the config's name or a snapshot's path, and seconds to follow it
     * @throws IOException when the snapshot cannot be read
     * @throws InterruptedException when interrupted
     */
    public static void main(String[] args) throws IOException, InterruptedException {
        String name = args.length > 0 ? args[0] : "web";
        Duration follow = Duration.ofSeconds(args.length > 1 ? Long.parseLong(args[1]) : 60);
        try (Config config = Config.open(name)) {
            show(config);
            while (config.await(follow)) {
                show(config);
            }
        } catch (NotPublishedException e) {
            System.err.println(e.getMessage() + " (is the agent running?)");
        }
    }

    private static void show(Config config) {
        System.out.printf("version %s: db.host %s, timeout %s, %d keys%n", config.version(),
                config.getString("db.host", "localhost"),
                config.getDuration("timeout", Duration.ofSeconds(10)), config.count());
    }
}
