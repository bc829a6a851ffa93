package tamis;

import org.apache.spark.sql.connector.read.streaming.Offset;

/** Offsets of a stream: Spark's is a class, not an interface, so a proxy cannot be one. */
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
