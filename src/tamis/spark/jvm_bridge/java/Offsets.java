package tamis;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.connector.read.streaming.Offset;

/**
 * Makes streaming offsets from their JSON text, and keeps the first one of a stream in its checkpoint.
 *
 * Spark's Offset is an abstract class, so a proxy cannot implement it. Used by spark/streaming/stream_start.py
 * and stream_read.py.
 */
public class Offsets {
  public static class Json extends Offset {
    private final String text;

    public Json(String text) {
      this.text = text;
    }

    public String json() {
      return text;
    }
  }

  public Object make(String json) {
    return new Json(json);
  }

  /** Returns the text that was kept in a folder, or null. */
  public String kept(Configuration conf, String folder, String name) throws IOException {
    Path path = new Path(folder, name);
    FileSystem files = path.getFileSystem(conf);
    if (!files.exists(path)) return null;
    FSDataInputStream in = files.open(path);
    try {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } finally {
      in.close();
    }
  }

  /** Keeps a text in a folder, whole or not at all, and returns the text that is there then. */
  public String keep(Configuration conf, String folder, String name, String text) throws IOException {
    Path path = new Path(folder, name);
    Path draft = new Path(folder, "." + name + "." + UUID.randomUUID() + ".tmp");
    FileSystem files = path.getFileSystem(conf);
    files.mkdirs(path.getParent());
    FSDataOutputStream out = files.create(draft, true);
    try {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    } finally {
      out.close();
    }
    if (!files.rename(draft, path)) files.delete(draft, false);
    return kept(conf, folder, name);
  }
}
