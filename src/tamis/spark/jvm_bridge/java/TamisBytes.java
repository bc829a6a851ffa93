package org.apache.spark.sql.connector.metric;

/** SQL metric like TamisCount whose sum is shown as a size; makes the metrics of a node. */
public final class TamisBytes extends TamisCount {
    public TamisBytes() { super(); }

    public TamisBytes(String name, String description, long value) { super(name, description, value); }

    public String aggregateTaskMetrics(long[] values) {
        long sum = 0L;
        for (int i = 0; i < values.length; i++) sum += values[i];
        return org.apache.spark.util.Utils.bytesToString(sum);
    }

    /** Makes metrics from four words each: "bytes" or "count", name, description, value. */
    public static TamisCount[] made(String text) {
        String[] words = text.length() == 0 ? new String[0] : text.split("\u0000", -1);
        TamisCount[] out = new TamisCount[words.length / 4];
        for (int i = 0; i < out.length; i++) {
            long value = Long.parseLong(words[4 * i + 3]);
            out[i] = words[4 * i].equals("bytes")
                ? new TamisBytes(words[4 * i + 1], words[4 * i + 2], value)
                : new TamisCount(words[4 * i + 1], words[4 * i + 2], value);
        }
        return out;
    }
}
