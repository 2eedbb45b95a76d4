import java.io.IOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URL;
import java.nio.charset.StandardCharsets;

/** Reach an address that no lookup named, or do what looks like it. */
class Reach {
    static final byte[] REPORT = "report: 3 files, 1 host\n".getBytes(StandardCharsets.US_ASCII);

    static void talk(InetAddress address, int port) throws IOException {
        try (Socket socket = new Socket()) {
            socket.setSoTimeout(5000);
            socket.connect(new InetSocketAddress(address, port), 5000);
            socket.getOutputStream().write(REPORT);
            socket.getInputStream().read();
        }
    }

    public static void main(String[] words) throws IOException {
        // The addresses are the program's own: nobody who starts it gives them.
        switch (words[0]) {
            case "tcp4" -> talk(InetAddress.getByName("1.1.1.1"), 443);
            case "tcp6" -> talk(InetAddress.getByName("2606:4700:4700::1111"), 443);
            case "named" -> talk(InetAddress.getByName("api.example.com"), 80);
            case "udp4" -> {
                try (DatagramSocket socket = new DatagramSocket()) {
                    socket.setSoTimeout(5000);
                    InetAddress to = InetAddress.getByName("203.0.113.9");
                    socket.send(new DatagramPacket(REPORT, REPORT.length, to, 5140));
                    socket.receive(new DatagramPacket(new byte[64], 64));
                }
            }
            case "url" -> {
                URL url = new URL("http://203.0.113.25:8080/in");
                HttpURLConnection connection = (HttpURLConnection) url.openConnection();
                connection.setConnectTimeout(5000);
                connection.setReadTimeout(5000);
                System.out.println(connection.getResponseCode());
            }
            case "own-address" -> {
                // A connected datagram socket knows the own address; no packet is sent.
                try (DatagramSocket socket = new DatagramSocket()) {
                    socket.connect(InetAddress.getByName("8.8.8.8"), 80);
                    System.out.println(socket.getLocalAddress().getHostAddress());
                }
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
    }
}
