package tamis;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetOptions;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.sources.StringStartsWith;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.SerializableConfiguration;

/**
 * Makes the objects that a scan returns to Spark: input partitions, Parquet readers, statistics.
 *
 * Takes one packed byte array or text per object, because Py4J calls are too expensive to build them
 * piecemeal. Gives InputPartition[], PartitionReaderFactory and Statistics. Used by spark/scan/spark_scan.py,
 * spark_batch.py and spark/streaming/stream_read.py; spark/executors/partitions.py and
 * spark/scan/parquet_filter.py pack the input.
 */
public final class Partitions {
    private static final int MOST = 32;
    /**
     * Forces the vectorized path of Spark's Parquet reader, whatever the session says: the row-based path
     * reads from the session, not from the settings passed here, whether to match columns by id.
     */
    private static final String[] OWN = {"spark.sql.parquet.enableVectorizedReader", "true", "spark.sql.parquet.enableNestedColumnVectorizedReader", "true"};
    /** Hadoop settings of a scan, with the application id, to their broadcast. */
    private final Map broadcasts = new Latest();

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
     * Returns an estimate. {@code columns} lists, for each column with statistics, its name, type code,
     * minimum, maximum, number of NULLs and number of distinct values (empty if unknown), all separated by
     * NUL.
     */
    public Object estimate(long bytes, long rows, String columns) {
        HashMap found = new HashMap();
        String[] words = columns.isEmpty() ? new String[0] : columns.split("\0", -1);
        for (int i = 0; i < words.length; i += 6) {
            long distinct = words[i + 5].isEmpty() ? -1L : Long.parseLong(words[i + 5]);
            Known known = new Known(value(words[i + 1], words[i + 2]), value(words[i + 1], words[i + 3]), Long.parseLong(words[i + 4]), distinct);
            found.put(FieldReference.column(words[i]), known);
        }
        return new Estimate(bytes, rows, found);
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

    /**
     * Returns partitions for Python workers. Input, big-endian: their number, then length and bytes of each.
     */
    public InputPartition[] python(byte[] packed) throws Exception {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(packed));
        InputPartition[] out = new InputPartition[in.readInt()];
        for (int i = 0; i < out.length; i++) {
            byte[] payload = new byte[in.readInt()];
            in.readFully(payload);
            out[i] = new PythonInputPartition(i, payload);
        }
        return out;
    }

    /**
     * Returns partitions of files. Input, big-endian: the number of partitions; for each, the number of
     * files; for each file, its URL (length and UTF-8), its size, and the offset and length in bytes of the
     * range to read.
     */
    public InputPartition[] files(byte[] packed) throws Exception {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(packed));
        InputPartition[] out = new InputPartition[in.readInt()];
        for (int i = 0; i < out.length; i++) {
            PartitionedFile[] files = new PartitionedFile[in.readInt()];
            for (int f = 0; f < files.length; f++) {
                byte[] url = new byte[in.readInt()];
                in.readFully(url);
                long size = in.readLong();
                long start = in.readLong();
                long length = in.readLong();
                SparkPath path = SparkPath.fromUrlString(new String(url, "UTF-8"));
                files[f] = new PartitionedFile(InternalRow.empty(), path, start, length, new String[0], 0L, size, noMap());
            }
            out[i] = new FilePartition(i, files);
        }
        return out;
    }

    /** Returns partitions of files (see files), and the reader of them (see parquet) as the answer of another method. */
    public Object filesAndParquet(byte[] packed, String schemaJson, String filter, boolean pages, String readerMethod) throws Exception {
        return new Handler.Answers(files(packed), readerMethod, parquet(schemaJson, filter, pages));
    }

    /**
     * Counts the rows that the reader returns for these partitions (see files), on the driver. An audit
     * compares them.
     */
    public long countRows(PartitionReaderFactory factory, byte[] packed) throws Exception {
        long rows = 0;
        InputPartition[] partitions = files(packed);
        for (int i = 0; i < partitions.length; i++) {
            boolean columnar = factory.supportColumnarReads(partitions[i]);
            PartitionReader reader = columnar ? factory.createColumnarReader(partitions[i]) : factory.createReader(partitions[i]);
            try {
                while (reader.next()) rows += columnar ? ((ColumnarBatch) reader.get()).numRows() : 1;
            } finally {
                reader.close();
            }
        }
        return rows;
    }

    /**
     * Returns Spark's own Parquet reader for the columns of a schema (Spark's JSON, with column ids in field
     * metadata) and hints to skip by (see filters). {@code pages}: whether page indexes may be trusted.
     */
    public PartitionReaderFactory parquet(String schemaJson, String filter, boolean pages) {
        SparkSession session = (SparkSession) SparkSession.active();
        SQLConf conf = session.sessionState().conf().clone();
        for (int i = 0; i < OWN.length; i += 2) conf.setConfString(OWN[i], OWN[i + 1]);
        StructType schema = (StructType) DataType.fromJson(schemaJson);
        Configuration hadoop = session.sessionState().newHadoopConf();
        hadoop.set("parquet.read.support.class", "org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport");
        hadoop.set("org.apache.spark.sql.parquet.row.requested_schema", schemaJson);
        hadoop.set("org.apache.spark.sql.parquet.row.attributes", schemaJson);
        hadoop.set("spark.sql.session.timeZone", conf.sessionLocalTimeZone());
        String[] flags = {
            "spark.sql.optimizer.nestedSchemaPruning.enabled", "spark.sql.caseSensitive", "spark.sql.parquet.binaryAsString",
            "spark.sql.parquet.int96AsTimestamp", "spark.sql.parquet.inferTimestampNTZ.enabled", "spark.sql.legacy.parquet.nanosAsLong"
        };
        for (int i = 0; i < flags.length; i++) hadoop.set(flags[i], conf.getConfString(flags[i]));
        hadoop.setBoolean("parquet.page.verify-checksum.enabled", true);
        if (!pages) hadoop.setBoolean("parquet.filter.columnindex.enabled", false);
        hadoop.setBoolean("spark.sql.parquet.fieldId.read.enabled", true);
        hadoop.setBoolean("spark.sql.parquet.fieldId.read.ignoreMissing", false);
        return new ParquetPartitionReaderFactory(
            conf, broadcast(session, hadoop), schema, schema, new StructType(), filters(filter), scala.Option.empty(), new ParquetOptions(strict(), conf));
    }

    /**
     * Returns the broadcast of these settings, shared by all scans with equal settings: making it costs more
     * than the rest of a scan's start. Sharing is safe, because readers copy the settings for each file and
     * never change the original.
     */
    private synchronized Broadcast broadcast(SparkSession session, Configuration hadoop) {
        Map said = new HashMap();
        for (Iterator it = hadoop.iterator(); it.hasNext();) {
            Map.Entry entry = (Map.Entry) it.next();
            said.put(entry.getKey(), entry.getValue());
        }
        said.put("", session.sparkContext().applicationId());
        Broadcast known = (Broadcast) broadcasts.get(said);
        if (known == null) {
            scala.reflect.ClassTag tag = scala.reflect.ClassTag$.MODULE$.apply(SerializableConfiguration.class);
            known = session.sparkContext().broadcast(new SerializableConfiguration(hadoop), tag);
            broadcasts.put(said, known);
        }
        return known;
    }

    private static final class Latest extends LinkedHashMap {
        Latest() { super(16, 0.75f, true); }

        protected boolean removeEldestEntry(Map.Entry eldest) { return size() > MOST; }
    }

    /**
     * Parses filters from NUL-separated words in prefix order: "and" or "or" and two filters; "is_null" or
     * "is_not_null" and a column; any other comparison, a column, a type and a constant, where "in" has a
     * count and that many constants.
     */
    public Filter[] filters(String text) {
        ArrayList out = new ArrayList();
        Iterator words = Arrays.asList(text.split("\u0000", -1)).iterator();
        while (text.length() > 0 && words.hasNext()) out.add(filter(words));
        return (Filter[]) out.toArray(new Filter[0]);
    }

    private static Filter filter(Iterator words) {
        String op = (String) words.next();
        if (op.equals("and")) return new And(filter(words), filter(words));
        if (op.equals("or")) return new Or(filter(words), filter(words));
        String column = (String) words.next();
        if (op.equals("is_null")) return new IsNull(column);
        if (op.equals("is_not_null")) return new IsNotNull(column);
        String type = (String) words.next();
        if (op.equals("in")) {
            Object[] values = new Object[Integer.parseInt((String) words.next())];
            for (int i = 0; i < values.length; i++) values[i] = constant(type, (String) words.next());
            return new In(column, values);
        }
        Object value = constant(type, (String) words.next());
        if (op.equals("eq")) return new EqualTo(column, value);
        if (op.equals("lt")) return new LessThan(column, value);
        if (op.equals("le")) return new LessThanOrEqual(column, value);
        if (op.equals("gt")) return new GreaterThan(column, value);
        if (op.equals("ge")) return new GreaterThanOrEqual(column, value);
        if (op.equals("starts_with")) return new StringStartsWith(column, (String) value);
        throw new IllegalArgumentException(op);
    }

    /**
     * Converts a constant to the form that Spark's Parquet reader takes, with dates and times as java.time
     * values.
     */
    private static Object constant(String type, String text) {
        if (type.equals("string")) return text;
        if (type.equals("decimal")) return new BigDecimal(text);
        if (type.equals("long")) return Long.valueOf(text);
        if (type.equals("integer")) return Integer.valueOf(text);
        if (type.equals("short")) return Short.valueOf(text);
        if (type.equals("byte")) return Byte.valueOf(text);
        if (type.equals("date")) return LocalDate.ofEpochDay(Long.parseLong(text));
        if (type.equals("timestamp")) return Instant.EPOCH.plus(Long.parseLong(text), ChronoUnit.MICROS);
        throw new IllegalArgumentException(type);
    }

    /** Options by which no part is skipped: the session's settings may ask Spark to leave out what it cannot read. */
    private static scala.collection.immutable.Map strict() {
        return new scala.collection.immutable.Map.Map2("ignoreCorruptFiles", "false", "ignoreMissingFiles", "false");
    }

    private static scala.collection.immutable.Map noMap() {
        return (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty();
    }
}
