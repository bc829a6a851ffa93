package tamis;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.CreatableRelationProvider;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The class that Spark loads for format("tamis").
 *
 * Implements TableProvider (reads) and CreatableRelationProvider (DataFrameWriter.save). Spark makes one
 * instance per use; each forwards to the delegate registered by Bridge.register_source
 * (spark/catalog/path_source.py).
 */
public final class DefaultSource implements TableProvider, CreatableRelationProvider {
    public static final Map delegates = new ConcurrentHashMap();

    private static Object delegate() { return delegates.get("tamis"); }

    public StructType inferSchema(CaseInsensitiveStringMap options) { return ((TableProvider) delegate()).inferSchema(options); }

    /**
     * True only inside DataFrameWriter.save, which asks for the table before createRelation, even for a table
     * that does not exist yet. Elsewhere Spark rejects a user-specified schema.
     */
    public boolean supportsExternalMetadata() { return saving(); }

    public Table getTable(StructType schema, Transform[] partitioning, Map properties) {
        return saving() ? new Target(schema) : ((TableProvider) delegate()).getTable(schema, partitioning, properties);
    }

    public BaseRelation createRelation(SQLContext context, SaveMode mode, scala.collection.immutable.Map parameters, Dataset data) {
        ((CreatableRelationProvider) delegate()).createRelation(context, mode, parameters, data);
        return new Written(context, data.schema());
    }

    private static boolean saving() {
        StackTraceElement[] stack = Thread.currentThread().getStackTrace();
        for (int i = 0; i < stack.length; i++)
            if (stack[i].getClassName().equals("org.apache.spark.sql.classic.DataFrameWriter") && stack[i].getMethodName().equals("save")) return true;
        return false;
    }

    /** Placeholder for the table that createRelation writes, which may not exist yet. Has no capabilities. */
    public static final class Target implements Table {
        private final StructType schema;

        public Target(StructType schema) { this.schema = schema; }

        public String name() { return "tamis"; }

        @SuppressWarnings("deprecation")
        public StructType schema() { return schema; }

        public Set capabilities() { return new HashSet(); }
    }

    /** The relation that createRelation must return. Spark does nothing with it. */
    public static final class Written extends BaseRelation {
        private final SQLContext context;
        private final StructType schema;

        public Written(SQLContext context, StructType schema) {
            this.context = context;
            this.schema = schema;
        }

        public SQLContext sqlContext() { return context; }

        @SuppressWarnings("deprecation")
        public StructType schema() { return schema; }
    }
}
