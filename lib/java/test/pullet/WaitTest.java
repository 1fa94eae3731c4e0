package pullet;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;

/** Waiting without a thread: nextChange. */
final class WaitTest {
    private WaitTest() {}

    private static void until(String what, BooleanSupplier is) throws InterruptedException {
        long end = System.nanoTime() + 20_000_000_000L;
        while (!is.getAsBoolean()) {
            if (System.nanoTime() > end) {
                throw new AssertionError("never: " + what);
            }
            Thread.sleep(1);
        }
    }

    private static long threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(t -> t.getName().startsWith("pullet-")).count();
    }

    private static void get(CompletableFuture<?> f) throws Exception {
        f.get(20, TimeUnit.SECONDS);
    }

    /** A config that follows in a loop: it moves between two requests, in the loop's thread. */
    private static final class Service {
        final Config config;
        final EventLoop loop;
        final BlockingQueue<Long> moves = new LinkedBlockingQueue<>();
        CompletableFuture<Void> next;

        Service(Config config) throws IOException {
            this.config = config;
            loop = new EventLoop(key -> config.getString(key, "none"));
            loop.execute(this::follow);
        }

        void follow() {
            next = config.nextChange();
            next.thenRunAsync(() -> {
                try {
                    ConfigTest.same(true, loop.isInside(), "in the loop");
                    if (config.refresh()) {
                        moves.add(config.generation());
                    }
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
                follow();
            }, loop);
        }
    }

    private static void eventLoop(Agent a) throws Exception {
        a.start();
        a.publish(1, "1", Map.of("n", Agent.text("1")));
        Config c = Config.open(a.path);
        Service s = new Service(c);
        try (EventLoop loop = s.loop;
                Socket client = new Socket(InetAddress.getLoopbackAddress(), loop.port());
                BufferedReader in = new BufferedReader(new InputStreamReader(client.getInputStream(),
                        StandardCharsets.UTF_8))) {
            for (long g = 2; g <= 100; g++) { // whatever the moment between the rename and the page
                a.write(Agent.build(g, "v", Map.of("n", Agent.text(String.valueOf(g)))));
                for (long i = 0; i < g % 17; i++) {
                    Thread.yield();
                }
                a.announce(g);
                ConfigTest.same(g, s.moves.poll(20, TimeUnit.SECONDS), "a version was missed");
                client.getOutputStream().write("n\n".getBytes(StandardCharsets.UTF_8));
                ConfigTest.same(String.valueOf(g), in.readLine(), "answer");
            }
            loop.execute(() -> s.next.cancel(false));
            CompletableFuture<Void> last = c.nextChange();
            c.close();
            ConfigTest.fails(ExecutionException.class, () -> last.get(20, TimeUnit.SECONDS), "closed");
            ConfigTest.fails(ExecutionException.class,
                    () -> c.nextChange().get(20, TimeUnit.SECONDS), "of what is closed");
        }
        until("the threads end", () -> threads() == 0);
    }

    /** 200 futures share two threads, and leave none when they are cancelled. */
    private static void noLeak(Agent a) throws Exception {
        a.start();
        a.publish(1, "v", Map.of());
        try (Config c = Config.open(a.path)) {
            List<CompletableFuture<Void>> all = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                all.add(c.nextChange());
            }
            ConfigTest.fails(TimeoutException.class, () -> all.get(0).get(1, TimeUnit.MILLISECONDS),
                    "nothing is new");
            ConfigTest.same(true, threads() <= 2, "threads");
            all.forEach(f -> f.cancel(false));
            until("the threads end", () -> threads() == 0);
        }
    }

    /** Each kind of news completes it, once. */
    private static void nextChange(Agent a, boolean page) throws Exception {
        if (page) {
            a.start();
        }
        try (Config c = Config.openWaiting(a.path)) {
            for (long g = 1; g <= 3; g++) {
                CompletableFuture<Void> before = c.nextChange();
                a.publish(g, "v" + g, Map.of());
                while (c.generation() != g) { // once too often is allowed
                    get(before);
                    c.refresh();
                    before = c.nextChange();
                }
                before.cancel(false);
            }
            a.publish(4, "v4", Map.of());
            get(c.nextChange()); // of what is there already
            c.refresh();
            CompletableFuture<Void> none = c.nextChange();
            ConfigTest.same(false, none.isDone(), "nothing is new");
            if (page) {
                a.withdraw();
                get(none);
                ConfigTest.fails(WithdrawnException.class, c::refresh, "withdrawn");
                none = c.nextChange(); // said already: no loop that spins
                CompletableFuture<Void> still = none;
                ConfigTest.fails(TimeoutException.class, () -> still.get(20, TimeUnit.MILLISECONDS), "gone");
                a.publish(4, "v4", Map.of());
                get(none);
                ConfigTest.same(true, c.refresh(), "back");
            }
            none.cancel(false);
        }
    }

    /** The directory comes after who waits, goes, and comes again. */
    private static void directory(Agent a) throws Exception {
        Path directory = a.path.resolveSibling("run");
        Agent there = new Agent(directory);
        try (Config c = Config.openWaiting(there.path)) {
            for (long g = 1; g <= 2; g++) {
                CompletableFuture<Void> next = c.nextChange();
                Files.createDirectory(directory);
                there.publish(g, "v" + g, Map.of());
                get(next);
                ConfigTest.same(true, c.refresh(), "moved");
                CompletableFuture<Void> idle = c.nextChange();
                Files.delete(there.path);
                Files.delete(directory);
                idle.cancel(false);
                ConfigTest.fails(NotPublishedException.class, () -> c.await(Duration.ofSeconds(20)), "gone");
            }
        }
    }

    /** Who waits hears of an agent that was started again without its old directory. */
    private static void startedAgain(Agent a) throws Exception {
        Path directory = a.path.resolveSibling("run");
        Config c = null;
        for (long g = 1; g <= 4; g++) {
            Files.createDirectory(directory);
            Agent there = new Agent(directory);
            CompletableFuture<Void> before = c == null ? null : c.nextChange();
            there.start();
            there.publish(g, "v" + g, Map.of());
            if (c == null) {
                c = Config.open(there.path);
            } else {
                get(before);
                ConfigTest.same(true, c.await(Duration.ofSeconds(20)), "moved");
                ConfigTest.same(g, c.generation(), "generation");
            }
            Files.delete(there.path);
            Files.delete(directory.resolve("web.gen"));
            Files.delete(directory);
        }
        c.close();
    }

    /** Configs that come and go: their futures, late, cost the others' thread no watch each. */
    private static void closedMeanwhile(Agent a) throws Exception {
        a.start();
        a.publish(1, "1", Map.of("n", Agent.text("1")));
        CompletableFuture<Void> blocked = new CompletableFuture<>();
        CompletableFuture<Void> free = new CompletableFuture<>();
        try (Config first = Config.open(a.path)) {
            CompletableFuture<Void> next = first.nextChange();
            CompletableFuture<Void> then = next.thenRun(() -> { // in the thread of all futures
                blocked.complete(null);
                free.join();
            });
            a.publish(2, "2", Map.of("n", Agent.text("2")));
            get(blocked);
            CompletableFuture<Void> last = null;
            for (int i = 0; i < 100; i++) {
                try (Config c = Config.open(a.path)) {
                    last = c.nextChange();
                }
            }
            long before = new Thread().getId();
            free.complete(null);
            get(then);
            CompletableFuture<Void> end = last;
            until("the last one ends", end::isCompletedExceptionally);
            ConfigTest.same(true, new Thread().getId() - before < 20, "a thread for each watch");
        }
    }

    static void run() throws IOException {
        ConfigTest.test("event loop", WaitTest::eventLoop);
        ConfigTest.test("no leak", WaitTest::noLeak);
        ConfigTest.test("next change", a -> nextChange(a, false));
        ConfigTest.test("next change with a page", a -> nextChange(a, true));
        ConfigTest.test("started again", WaitTest::startedAgain);
        ConfigTest.test("directory", WaitTest::directory);
        ConfigTest.test("closed meanwhile", WaitTest::closedMeanwhile);
    }
}
