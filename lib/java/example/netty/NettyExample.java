package example;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.LineBasedFrameDecoder;
import io.netty.handler.codec.string.StringDecoder;
import io.netty.handler.codec.string.StringEncoder;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import pullet.Config;

/**
 * A server on Netty's event loops that follows the config "web" (or the one named): it answers each
 * line with the greeting of the version in use. One event loop refreshes, and no thread waits;
 * handlers, in whatever loop, take a record of one version, so none sees half of a change.
 */
public final class NettyExample implements AutoCloseable {
    /** What the server reads of its config. */
    record Settings(String greeting) {}

    private final Config config;
    private final Consumer<String> log;
    private final EventLoopGroup loops = new NioEventLoopGroup(2); // EpollEventLoopGroup as well
    private final Channel server;
    private volatile Settings settings;
    private CompletableFuture<Void> next;

    /**
     * Starts it.
     *
     * @param config what to follow; not closed here
     * @param port where to listen on 127.0.0.1, 0 for any port
     * @param log called in the event loop with a line for each version, in use or not
     * @throws IOException when the first version does not fit
     */
    public NettyExample(Config config, int port, Consumer<String> log) throws IOException {
        this.config = config;
        this.log = log;
        settings = config.as(Settings.class);
        server = new ServerBootstrap().group(loops).channel(NioServerSocketChannel.class)
                .childHandler(new Lines())
                .bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port))
                .syncUninterruptibly().channel();
        server.eventLoop().execute(this::follow);
    }

    private void follow() {
        next = config.nextChange();
        next.thenRunAsync(this::move, server.eventLoop()); // an EventLoop is an Executor
    }

    private void move() {
        try {
            if (config.refresh()) {
                settings = config.as(Settings.class);
                log.accept("version " + config.version());
            }
        } catch (IOException e) { // does not fit, or withdrawn: the settings before stay in use
            log.accept(e.getMessage());
        }
        follow();
    }

    /**
     * Where it listens.
     *
     * @return the port
     */
    public int port() {
        return ((InetSocketAddress) server.localAddress()).getPort();
    }

    @Override
    public void close() {
        server.eventLoop().submit(() -> next.cancel(false)).syncUninterruptibly();
        loops.shutdownGracefully(0, 5, TimeUnit.SECONDS).syncUninterruptibly();
    }

    /** A connection: lines of text. */
    private final class Lines extends ChannelInitializer<Channel> {
        @Override
        protected void initChannel(Channel client) {
            client.pipeline().addLast(new LineBasedFrameDecoder(256), new StringDecoder(),
                    new StringEncoder(), new Greeter());
        }
    }

    /** Answers a line. */
    private final class Greeter extends SimpleChannelInboundHandler<String> {
        @Override
        protected void channelRead0(ChannelHandlerContext client, String line) {
            client.writeAndFlush(settings.greeting() + " " + line + "\n");
        }
    }

    /**
     * Runs it until it is killed.
     *
     * @param args the config's name or a snapshot's path, and a port
     * @throws IOException when the snapshot cannot be read
     */
    public static void main(String[] args) throws IOException {
        Config config = Config.open(args.length > 0 ? args[0] : "web");
        NettyExample example = new NettyExample(config, args.length > 1 ? Integer.parseInt(args[1]) : 0,
                System.out::println);
        System.out.println("listening at port " + example.port());
        example.server.closeFuture().syncUninterruptibly();
    }
}
