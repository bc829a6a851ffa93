package tamis;

import org.apache.spark.sql.connector.read.streaming.Offset;

/**
 * Makes streaming offsets from their JSON text.
 *
 * Spark's Offset is an abstract class, so a proxy cannot implement it. Used by
 * spark/streaming/stream_read.py.
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
}
