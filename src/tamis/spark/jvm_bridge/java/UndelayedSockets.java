package tamis;

import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import javax.net.SocketFactory;
import py4j.CallbackClient;
import py4j.DefaultGatewayServerListener;
import py4j.GatewayServer;
import py4j.Py4JServerConnection;

/**
 * Turns Nagle's algorithm off for the sockets between Java and Python.
 *
 * Py4J writes a text in pieces of 8,192 bytes. With the algorithm, the second piece waits until Python's side has
 * acknowledged the first, which takes it 40 ms.
 *
 * Used by spark/jvm_bridge/callback_server.py.
 */
public final class UndelayedSockets {
    /** Changes the sockets that are open, and those that either side opens later. */
    public void undelay(GatewayServer server) throws Exception {
        server.addListener(new Listener());
        Collection open = (Collection) field(GatewayServer.class, "connections").get(server);
        for (Iterator it = new ArrayList(open).iterator(); it.hasNext();) undelay(((Py4JServerConnection) it.next()).getSocket());
        field(CallbackClient.class, "socketFactory").set(server.getCallbackClient(), new Factory());
    }

    private static Field field(Class type, String name) throws NoSuchFieldException {
        Field found = type.getDeclaredField(name);
        found.setAccessible(true);
        return found;
    }

    private static Socket undelay(Socket socket) {
        try {
            if (socket != null) socket.setTcpNoDelay(true);
        } catch (SocketException closed) {
            return socket;
        }
        return socket;
    }

    /** Told of every connection that Python opens. */
    private static final class Listener extends DefaultGatewayServerListener {
        public void connectionStarted(Py4JServerConnection connection) { undelay(connection.getSocket()); }
    }

    /** Makes the sockets by which Java calls Python. */
    private static final class Factory extends SocketFactory {
        private final SocketFactory plain = SocketFactory.getDefault();

        public Socket createSocket() throws IOException { return undelay(plain.createSocket()); }

        public Socket createSocket(String host, int port) throws IOException { return undelay(plain.createSocket(host, port)); }

        public Socket createSocket(InetAddress host, int port) throws IOException { return undelay(plain.createSocket(host, port)); }

        public Socket createSocket(String host, int port, InetAddress local, int localPort) throws IOException {
            return undelay(plain.createSocket(host, port, local, localPort));
        }

        public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort) throws IOException {
            return undelay(plain.createSocket(host, port, local, localPort));
        }
    }
}
