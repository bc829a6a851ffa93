package org.apache.spark.sql.connector.metric;

/**
 * SQL metric that Spark sums over its values, and a value of it.
 *
 * Defined beside Spark's own metrics (spark/jvm_bridge/sql_metrics.py), because the listener behind the
 * Spark UI makes one by class name, with the constructor without arguments, in order to sum.
 */
public class TamisCount extends CustomSumMetric implements CustomTaskMetric {
    private final String name;
    private final String description;
    private final long value;

    public TamisCount() { this("", "", 0L); }

    public TamisCount(String name, String description, long value) {
        this.name = name;
        this.description = description;
        this.value = value;
    }

    public String name() { return name; }

    public String description() { return description; }

    public long value() { return value; }
}
