// The soak's reader in Java, which does what reader.c does.
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import pullet.Config;

final class Reader {
    private static final String[] KEYS = {"n", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8",
        "k9", "k10", "k11", "pad", "end"};
    private static final Duration WAIT = Duration.ofMillis(20);
    private static long versions;

    private final String name;
    private final Config config;
    private long generation;
    private long n;
    private boolean ended;

    private Reader(String name) throws IOException {
        this.name = name;
        config = Config.openWaiting(name);
        if (config.generation() != 0) {
            check();
        }
    }

    private void check() {
        int sum = (int) 2166136261L;
        for (String key : KEYS) {
            for (byte b : (config.getString(key, "") + "\n").getBytes(StandardCharsets.UTF_8)) {
                sum = (sum ^ (b & 0xff)) * 16777619;
            }
        }
        long newGeneration = config.generation();
        long number = config.getLong("n", -1);
        String said = config.getString("sum", "none");
        if (!said.equals(Integer.toUnsignedString(sum))) {
            System.out.printf("wrong: %s, version %d: the sum is %s, of what is there %s%n", name,
                    number, said, Integer.toUnsignedString(sum));
        }
        if (newGeneration < generation || number < n) {
            System.out.printf("wrong: %s went back from version %d of generation %d to %d of %d%n",
                    name, n, generation, number, newGeneration);
        }
        generation = newGeneration;
        n = number;
        ended = config.getString("end", "").equals("yes");
        versions++;
    }

    private void moveOn(boolean wait) throws InterruptedException {
        try {
            if (wait ? config.await(WAIT) : config.refresh()) {
                check();
            }
        } catch (IOException e) {
            System.out.printf("wrong: %s: %s%n", name, e);
        }
    }

    public static void main(String[] names) throws IOException, InterruptedException {
        List<Reader> readers = new ArrayList<>();
        for (String name : names) {
            readers.add(new Reader(name));
        }
        for (int turn = 0; !readers.stream().allMatch(reader -> reader.ended); turn++) {
            readers.get(turn % readers.size()).moveOn(true);
            for (Reader reader : readers) {
                reader.moveOn(false);
            }
        }
        System.out.printf("Java: %d versions%n", versions);
    }
}
