package tamis;

import java.util.Iterator;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;

/**
 * Scan builders that collect in Java what Spark pushes, and ask Python once, when the scan is built.
 *
 * Python decides alone what a scan returns. A builder of this file answers only what has one answer: a relation that
 * Pushed has not marked keeps no filter to itself, so all filters go back to Spark. For a marked relation, and from
 * the first limit or order on, Python's own builder answers; it gets what was collected. Installed by
 * spark/scan/scan_builder.py, which reads the text that build sends.
 */
public final class ScanBuilders implements BiFunction {
    private static final String MARK = "tamis.internal.under";
    private static final String UNREADABLE = "?";
    private BiFunction trees;
    private String known;
    private Function wrap;

    /**
     * Has tables make their builders here. "trees" is a TreeText, "known" its class names, and "wrap" makes of a
     * builder one that this Spark hands filters to; null if it does so to any.
     */
    public void install(BiFunction trees, String known, Function wrap) {
        this.trees = trees;
        this.known = known;
        this.wrap = wrap;
        Handler.makers.put("newScanBuilder", this);
    }

    /** Returns the builder of a table's handler, given the options of the relation; null if Python must make it. */
    public Object apply(Object table, Object options) {
        CaseInsensitiveStringMap given = (CaseInsensitiveStringMap) options;
        if (given.containsKey(MARK)) return null;
        Object made = new Collecting(this, (Handler) table, given);
        return wrap == null ? made : wrap.apply(made);
    }

    /** Collects filters and columns. */
    public static final class Collecting
        implements ScanBuilder, SupportsPushDownCatalystFilters, SupportsPushDownRequiredColumns, SupportsPushDownLimit, SupportsPushDownTopN {
        private final ScanBuilders home;
        private final Handler table;
        private final CaseInsensitiveStringMap options;
        private Seq filters;
        private StructType required;
        /** Python's builder, once it has been needed. */
        private Object asked;

        Collecting(ScanBuilders home, Handler table, CaseInsensitiveStringMap options) {
            this.home = home;
            this.table = table;
            this.options = options;
        }

        public Seq pushFilters(Seq pushed) {
            if (asked != null) return ((SupportsPushDownCatalystFilters) asked).pushFilters(pushed);
            filters = pushed;
            return pushed;
        }

        public Predicate[] pushedFilters() { return new Predicate[0]; }

        public void pruneColumns(StructType wanted) {
            if (asked != null) ((SupportsPushDownRequiredColumns) asked).pruneColumns(wanted);
            else required = wanted;
        }

        public boolean pushLimit(int limit) { return ((SupportsPushDownLimit) asked()).pushLimit(limit); }

        public boolean pushTopN(SortOrder[] orders, int limit) { return ((SupportsPushDownTopN) asked()).pushTopN(orders, limit); }

        /** Always true, as Python's builder answers: Spark sorts and limits the rows of the scan itself. */
        public boolean isPartiallyPushed() { return true; }

        public Scan build() {
            if (asked != null) return ((ScanBuilder) asked).build();
            return (Scan) table.ask("plannedScan", message(), required);
        }

        /** Returns Python's builder, which has got all that was collected. */
        private Object asked() {
            if (asked != null) return asked;
            asked = table.ask("newScanBuilder", options);
            if (filters != null) ((SupportsPushDownCatalystFilters) asked).pushFilters(filters);
            if (required != null) ((SupportsPushDownRequiredColumns) asked).pruneColumns(required);
            return asked;
        }

        /**
         * Returns, each after a NUL, the filters (see TreeText; "" without filters, UNREADABLE for a tree that is,
         * for example, nested too deeply), the columns (Spark's JSON; "" for all), the number of options, each key and value of them, and
         * the settings.
         */
        private String message() {
            StringBuilder out = new StringBuilder().append('\u0000').append(filters == null ? "" : trees());
            out.append('\u0000').append(required == null ? "" : required.json()).append('\u0000').append(options.size());
            for (Iterator it = options.asCaseSensitiveMap().entrySet().iterator(); it.hasNext();) {
                Map.Entry entry = (Map.Entry) it.next();
                out.append('\u0000').append(entry.getKey()).append('\u0000').append(entry.getValue());
            }
            return out.append(home.settings("tamis.")).toString();
        }

        private String trees() {
            try {
                return (String) home.trees.apply(filters, home.known);
            } catch (Throwable error) {
                return UNREADABLE;
            }
        }
    }

    /**
     * Returns the settings that planning needs (under a prefix; split sizes; CBO; parallelism) as name,
     * value, name ..., each after a NUL.
     */
    public String settings(String prefix) {
        SparkSession session = (SparkSession) SparkSession.active();
        SQLConf conf = session.sessionState().conf();
        StringBuilder out = new StringBuilder();
        scala.collection.Iterator it = conf.getAllConfs().iterator();
        while (it.hasNext()) {
            scala.Tuple2 entry = (scala.Tuple2) it.next();
            if (!((String) entry._1()).toLowerCase().startsWith(prefix)) continue;
            out.append("\u0000").append(entry._1()).append("\u0000").append(entry._2());
        }
        String[] wanted = {"spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes", "spark.sql.cbo.enabled"};
        for (int i = 0; i < wanted.length; i++) out.append("\u0000").append(wanted[i]).append("\u0000").append(conf.getConfString(wanted[i]));
        return out.append("\u0000parallelism\u0000").append(session.sparkContext().defaultParallelism()).toString();
    }
}
