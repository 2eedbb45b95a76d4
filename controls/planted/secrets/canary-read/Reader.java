import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Read a planted secret as Java programs do, or only look at it. */
class Reader {
    public static void main(String[] words) throws IOException {
        Path path = Path.of(System.getenv("HOME"), "project", ".env");
        switch (words[0]) {
            case "whole" -> Files.readString(path);
            case "map" -> {
                try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
                    System.out.println(channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size()).get(0));
                }
            }
            case "random" -> {
                try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "r")) {
                    file.seek(4);
                    System.out.println(file.readLine().length());
                }
            }
            case "look" -> System.out.println(Files.exists(path) + " " + Files.size(path) + " " + Files.isReadable(path));
            default -> throw new IllegalArgumentException(words[0]);
        }
    }
}
