package pullet;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.function.UnaryOperator;

/** A server as Netty's is built: one thread, a Selector, sockets, and tasks from other threads. */
final class EventLoop implements Executor, java.io.Closeable {
    private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
    private final Selector selector = Selector.open();
    private final ServerSocketChannel server = ServerSocketChannel.open();
    private final UnaryOperator<String> answer;
    private final Thread thread = new Thread(this::run, "event-loop");

    /** Answers each line that a client sends. */
    EventLoop(UnaryOperator<String> answer) throws IOException {
        this.answer = answer;
        server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        server.configureBlocking(false);
        server.register(selector, SelectionKey.OP_ACCEPT);
        thread.start();
    }

    int port() throws IOException {
        return ((InetSocketAddress) server.getLocalAddress()).getPort();
    }

    boolean isInside() {
        return Thread.currentThread() == thread;
    }

    @Override
    public void execute(Runnable task) {
        tasks.add(task);
        selector.wakeup();
    }

    private void run() {
        ByteBuffer b = ByteBuffer.allocate(256);
        try {
            while (selector.isOpen()) {
                selector.select();
                for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
                    task.run();
                }
                if (!selector.isOpen()) {
                    return;
                }
                for (SelectionKey key : selector.selectedKeys()) {
                    if (key.isAcceptable()) {
                        SocketChannel client = server.accept();
                        client.configureBlocking(false);
                        client.register(selector, SelectionKey.OP_READ);
                    } else {
                        serve((SocketChannel) key.channel(), b.clear());
                    }
                }
                selector.selectedKeys().clear();
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void serve(SocketChannel client, ByteBuffer b) throws IOException {
        if (client.read(b) < 0) {
            client.close();
            return;
        }
        String line = StandardCharsets.UTF_8.decode(b.flip()).toString().strip();
        client.write(StandardCharsets.UTF_8.encode(answer.apply(line) + "\n"));
    }

    @Override
    public void close() {
        execute(() -> {
            try {
                for (SelectionKey key : selector.keys()) {
                    key.channel().close();
                }
                selector.close();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
    }
}
