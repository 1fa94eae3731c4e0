// Java: package pullet, HashMap, System.getenv, Properties. Called by languages.py.
import java.io.IOException;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.function.UnaryOperator;
import pullet.Config;
import pullet.Key;

final class Bench {
    private static final int HOT = 16;
    private static final int ROUNDS = 5;
    private static String[] keys;
    private static long sink;
    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();

    private static int at;

    private static double run(UnaryOperator<String> read, int n) {
        long begin = CLOCK.getCurrentThreadCpuTime();
        long sum = 0;
        for (int i = 0; i < n; i++) {
            sum += read.apply(keys[i % HOT]).length();
        }
        sink += sum;
        return CLOCK.getCurrentThreadCpuTime() - begin;
    }

    private static double measure(UnaryOperator<String> read) {
        int n = 2;
        while (run(read, n) < 50e6) {
            n *= 2;
        }
        run(read, 10 * n); // until the compiler is done
        double[] ns = new double[ROUNDS];
        for (int i = 0; i < ROUNDS; i++) {
            ns[i] = run(read, n) / n;
        }
        Arrays.sort(ns);
        return ns[ROUNDS / 2];
    }

    private static Properties parse(Path file) {
        Properties all = new Properties();
        try (Reader in = Files.newBufferedReader(file)) {
            all.load(in);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return all;
    }

    private static String refresh(Config config) {
        try {
            return config.refresh() ? "moved" : "";
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static void main(String[] arguments) throws IOException {
        Path folder = Path.of(arguments[0]);
        Path file = folder.resolve("config.properties");
        keys = Arrays.copyOfRange(arguments, 1, 1 + HOT);
        Map<String, String> all = new HashMap<>();
        parse(file).forEach((key, value) -> all.put((String) key, (String) value));
        try (Config config = Config.open(folder.resolve("config.snap"))) {
            Key[] named = Arrays.stream(keys).map(config::key).toArray(Key[]::new);
            System.out.println(measure(key -> config.getString(key, "")) + " "
                    + measure(key -> named[at++ % HOT].getString("")) + " "
                    + measure(key -> refresh(config)) + " " + measure(all::get) + " "
                    + measure(System::getenv) + " " + measure(key -> parse(file).getProperty(key))
                    + " properties, java.util");
        }
    }
}
