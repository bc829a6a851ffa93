package tamis;

import java.util.ArrayList;
import java.util.function.Function;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.NoopCache$;
import org.apache.spark.sql.execution.datasources.PartitionSpec$;
import org.apache.spark.sql.execution.datasources.v2.FileScanBuilder;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Scan builders for a Spark that pushes Catalyst filters into its own file scans only (4.0).
 *
 * Takes a builder (of ScanBuilders, or the proxy that Python implements) and gives a FileScanBuilder that passes every
 * call to it. Nothing of
 * FileScanBuilder's own is used. Compiled only where spark/scan/pushed_filters.py finds that it is needed.
 */
public final class FileFilters implements Function {
    /** Returns a builder over the proxy. It takes aggregates if the proxy does. */
    public Object over(Object proxy) {
        return proxy instanceof SupportsPushDownAggregates ? new Aggregating(proxy) : new Builder(proxy);
    }

    /** As over, for ScanBuilders. */
    public Object apply(Object proxy) { return over(proxy); }

    private static InMemoryFileIndex noFiles() {
        Seq paths = CollectionConverters.asScala(new ArrayList()).toSeq();
        return new InMemoryFileIndex(
            SparkSession.active(), paths, (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty(), Option.apply(new StructType()),
            NoopCache$.MODULE$, Option.apply(PartitionSpec$.MODULE$.emptySpec()), Option.empty());
    }

    /** Passes filters, columns, limits and orders to the proxy. */
    public static class Builder extends FileScanBuilder implements SupportsPushDownLimit, SupportsPushDownTopN {
        protected final Object proxy;

        Builder(Object proxy) {
            super(SparkSession.active(), noFiles(), new StructType());
            this.proxy = proxy;
        }

        public Seq pushFilters(Seq filters) { return ((SupportsPushDownCatalystFilters) proxy).pushFilters(filters); }

        public Predicate[] pushedFilters() { return ((SupportsPushDownCatalystFilters) proxy).pushedFilters(); }

        public void pruneColumns(StructType required) { ((SupportsPushDownRequiredColumns) proxy).pruneColumns(required); }

        public boolean pushLimit(int limit) { return ((SupportsPushDownLimit) proxy).pushLimit(limit); }

        public boolean pushTopN(SortOrder[] orders, int limit) { return ((SupportsPushDownTopN) proxy).pushTopN(orders, limit); }

        public boolean isPartiallyPushed() { return ((SupportsPushDownLimit) proxy).isPartiallyPushed(); }

        public Scan build() { return ((ScanBuilder) proxy).build(); }
    }

    /** As Builder, and passes aggregates. */
    public static final class Aggregating extends Builder implements SupportsPushDownAggregates {
        Aggregating(Object proxy) { super(proxy); }

        public boolean supportCompletePushDown(Aggregation asked) { return ((SupportsPushDownAggregates) proxy).supportCompletePushDown(asked); }

        public boolean pushAggregation(Aggregation asked) { return ((SupportsPushDownAggregates) proxy).pushAggregation(asked); }
    }
}
