package pullet;

import example.NettyExample;
import io.netty.util.concurrent.FastThreadLocalThread;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Waiting without a thread in Netty's event loop: the example, as it stands. */
final class NettyTest {
    private NettyTest() {}

    private static Map<String, Value> greeting(long g) {
        return Map.of("greeting", Agent.text("hello " + g));
    }

    private static void follow(Agent a) throws Exception {
        a.start();
        a.publish(1, "1", greeting(1));
        BlockingQueue<String> log = new LinkedBlockingQueue<>();
        Callable<String> line = () -> log.poll(20, TimeUnit.SECONDS);
        try (Config config = Config.open(a.path);
                NettyExample server = new NettyExample(config, 0, s -> log.add(
                        Thread.currentThread() instanceof FastThreadLocalThread ? s : "not in the loop"));
                Socket client = new Socket(InetAddress.getLoopbackAddress(), server.port());
                BufferedReader in = new BufferedReader(new InputStreamReader(client.getInputStream(),
                        StandardCharsets.UTF_8))) {
            for (long g = 2; g <= 50; g++) {
                a.publish(g, String.valueOf(g), greeting(g));
                ConfigTest.same("version " + g, line.call(), "a version was missed");
                client.getOutputStream().write((g + "\n").getBytes(StandardCharsets.UTF_8));
                ConfigTest.same("hello " + g + " " + g, in.readLine(), "answer");
            }
            a.publish(51, "51", Map.of());
            ConfigTest.same(true, line.call().contains("greeting"), "does not fit");
            a.withdraw();
            ConfigTest.same(true, line.call().contains("withdrawn"), "withdrawn");
            client.getOutputStream().write("x\n".getBytes(StandardCharsets.UTF_8));
            ConfigTest.same("hello 50 x", in.readLine(), "the version before stays in use");
            a.publish(52, "52", greeting(52));
            ConfigTest.same("version 52", line.call(), "back");
        }
    }

    public static void main(String[] args) throws IOException {
        ConfigTest.test("netty", NettyTest::follow);
        ConfigTest.end();
    }
}
