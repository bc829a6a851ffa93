package tamis;

import java.math.BigDecimal;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.metric.TamisBytes;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.types.Decimal;

/**
 * Makes the answers of a scan to what Spark asks about it, from the text that Python sends when it makes the scan.
 *
 * Spark asks about ten things of every scan of a query, and each call to Python takes a millisecond. Used by
 * spark/scan/scan_answers.py, which packs the text; Tools gives the answers to the scan's Handler.
 */
public final class ScanAnswers implements BiFunction {
    private Function files;
    private String declared;
    private Object metrics;

    /** "files" is a Partitions. "metrics" declares the metrics of a scan: kind, name and description of each (words). */
    public void install(Function files, String metrics) {
        this.files = files;
        this.declared = metrics;
        this.metrics = metrics(null);
    }

    /** Returns the answers in a text of form 7 (wire_format.py), by method: name and value of each. "schema" is that of the rows. */
    public Object apply(Object text, Object schema) {
        Map known = answers((String) text);
        if (schema != null) known.put("readSchema", schema);
        return known;
    }

    private Map answers(String text) {
        Map known = new ConcurrentHashMap();
        for (Iterator words = Handler.unpacked(text).iterator(); words.hasNext();) {
            String name = (String) words.next();
            known.put(name, answer(name, (String) words.next()));
        }
        return known;
    }

    private Object answer(String name, String value) {
        if (name.equals("hashCode")) return Integer.valueOf(value);
        if (name.equals("estimateStatistics")) return estimate(value);
        if (name.equals("supportedCustomMetrics")) return metrics;
        if (name.equals("reportDriverMetrics")) return metrics(value.split(" "));
        if (name.equals("toBatch")) return answers(value);
        return name.equals("planInputPartitions") ? files.apply(value) : value;
    }

    /** Returns the declared metrics with these values; null for none. */
    private Object metrics(String[] values) {
        String[] words = declared.split("\0", -1);
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < words.length / 3; i++) {
            out.append(i == 0 ? "" : "\0").append(words[3 * i]).append('\0').append(words[3 * i + 1]).append('\0').append(words[3 * i + 2]);
            out.append('\0').append(values == null ? "0" : values[i]);
        }
        return TamisBytes.made(out.toString());
    }

    /** Size estimates of a scan for Spark's optimizer. */
    public static final class Estimate implements Statistics {
        private final long bytes;
        private final long rows;
        private final Map columns;

        public Estimate(long bytes, long rows, Map columns) {
            this.bytes = bytes;
            this.rows = rows;
            this.columns = columns;
        }

        public OptionalLong sizeInBytes() { return OptionalLong.of(bytes); }

        public OptionalLong numRows() { return OptionalLong.of(rows); }

        public Map columnStats() { return columns; }
    }

    /**
     * Column statistics: bounds in Spark's internal form (null for an all-NULL column); distinct is -1 if
     * unknown.
     */
    public static final class Known implements ColumnStatistics {
        private final Object min;
        private final Object max;
        private final long nulls;
        private final long distinct;

        public Known(Object min, Object max, long nulls, long distinct) {
            this.min = min;
            this.max = max;
            this.nulls = nulls;
            this.distinct = distinct;
        }

        public Optional min() { return Optional.ofNullable(min); }

        public Optional max() { return Optional.ofNullable(max); }

        public OptionalLong nullCount() { return OptionalLong.of(nulls); }

        public OptionalLong distinctCount() { return distinct < 0 ? OptionalLong.empty() : OptionalLong.of(distinct); }
    }

    /**
     * Returns an estimate. Input: bytes, rows, and for each column with statistics its name, type code, minimum,
     * maximum, number of NULLs and number of distinct values (empty if unknown), all separated by NUL.
     */
    public Object estimate(String text) {
        HashMap found = new HashMap();
        String[] words = text.split("\0", -1);
        for (int i = 2; i < words.length; i += 6) {
            long distinct = words[i + 5].isEmpty() ? -1L : Long.parseLong(words[i + 5]);
            Known known = new Known(value(words[i + 1], words[i + 2]), value(words[i + 1], words[i + 3]), Long.parseLong(words[i + 4]), distinct);
            found.put(FieldReference.column(words[i]), known);
        }
        return new Estimate(Long.parseLong(words[0]), Long.parseLong(words[1]), found);
    }

    private static Object value(String code, String text) {
        if (text.isEmpty()) return null;
        switch (code.charAt(0)) {
            case 'b': return Byte.valueOf(text);
            case 's': return Short.valueOf(text);
            case 'i': return Integer.valueOf(text);
            case 'l': return Long.valueOf(text);
            case 'f': return Float.valueOf(text);
            case 'd': return Double.valueOf(text);
            default: return Decimal.apply(new BigDecimal(text));
        }
    }
}
