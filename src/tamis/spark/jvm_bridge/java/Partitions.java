package tamis;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.lang.ref.WeakReference;
import java.math.BigDecimal;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.time.LocalDate;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.QueryPlanningTracker$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
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
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.SerializableConfiguration;

/**
 * Makes the objects that a batch returns to Spark: input partitions and Parquet readers.
 *
 * Takes one packed byte array or text per object, because Py4J calls are too expensive to build them
 * piecemeal. Gives InputPartition[] and PartitionReaderFactory. Used by ScanAnswers, spark/scan/spark_batch.py and
 * spark/streaming/micro_batch.py; spark/executors/partitions.py and spark/scan/parquet_filter.py pack the input.
 */
public final class Partitions implements Function {
    /** How many settings of sessions are kept, and how many broadcasts of each, which have 100 KB. */
    private static final int MOST_SETTINGS = 4;
    private static final int MOST_BROADCASTS = 32;
    private static final String SIGNED = "unix:size,lastModifiedTime,ctime,ino";
    /**
     * Forces the vectorized path of Spark's Parquet reader, whatever the session says: the row-based path
     * reads from the session, not from the settings passed here, whether to match columns by id.
     */
    private static final String[] OWN = {"spark.sql.parquet.enableVectorizedReader", "true", "spark.sql.parquet.enableNestedColumnVectorizedReader", "true"};
    /** Settings of the session that Spark's reader looks up among those of Hadoop. */
    private static final String[] FLAGS = {
        "spark.sql.optimizer.nestedSchemaPruning.enabled", "spark.sql.caseSensitive", "spark.sql.parquet.binaryAsString",
        "spark.sql.parquet.int96AsTimestamp", "spark.sql.parquet.inferTimestampNTZ.enabled", "spark.sql.legacy.parquet.nanosAsLong"
    };
    /** Hadoop settings of a query, with the application id, to the broadcasts of them by what a scan adds. */
    private final Map broadcasts = new Latest(MOST_SETTINGS);
    /** The settings of the query that was planned last. */
    private volatile Settings latest;

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
     * Returns the answer of planInputPartitions, made when Spark asks for it: filesAndParquet, or null if a file has
     * changed. Input, in form 7 (wire_format.py): the files in Base64 (see files); words with the URL and the signature
     * (file_checks.py) of each; the schema; the hints; whether page indexes may be trusted.
     */
    public Object apply(Object text) { return new CheckedFiles(this, Handler.unpacked((String) text)); }

    private static final class CheckedFiles implements Handler.Deferred {
        private final Partitions home;
        private final List words;

        CheckedFiles(Partitions home, List words) {
            this.home = home;
            this.words = words;
        }

        public Object answer() throws Exception {
            String[] signed = ((String) words.get(1)).split("\0", -1);
            for (int i = 0; i + 1 < signed.length; i += 2) if (!signed[i + 1].equals(signature(signed[i]))) return null;
            byte[] packed = Base64.getDecoder().decode((String) words.get(0));
            return home.filesAndParquet(packed, (String) words.get(2), (String) words.get(3), words.get(4).equals("true"), "createReaderFactory");
        }

        /** Returns size, modification time, change time and inode of a file; "" if it cannot be read here. */
        private static String signature(String url) {
            try {
                Map found = Files.readAttributes(Path.of(URI.create(url)), SIGNED, new LinkOption[0]);
                return found.get("size") + " " + nanos(found.get("lastModifiedTime")) + " " + nanos(found.get("ctime")) + " " + found.get("ino");
            } catch (Exception error) { // also on a system without these attributes: Python checks the file
                return "";
            }
        }

        private static long nanos(Object time) { return ((FileTime) time).to(TimeUnit.NANOSECONDS); }
    }

    /**
     * Returns Spark's own Parquet reader for the columns of a schema (Spark's JSON, with column ids in field
     * metadata) and hints to skip by (see filters). {@code pages}: whether page indexes may be trusted.
     */
    public PartitionReaderFactory parquet(String schemaJson, String filter, boolean pages) {
        Settings settings = settings();
        StructType schema = (StructType) DataType.fromJson(schemaJson);
        return new ParquetPartitionReaderFactory(
            settings.conf, settings.broadcast(schemaJson, pages), schema, schema, new StructType(), filters(filter), scala.Option.empty(),
            new ParquetOptions(strict(), settings.conf));
    }

    /** Returns the settings of the active session. All scans of a query that Spark is planning share them. */
    private Settings settings() {
        SparkSession session = (SparkSession) SparkSession.active();
        scala.Option query = QueryPlanningTracker$.MODULE$.get();
        Settings known = latest;
        if (known != null && query.isDefined() && known.session == session && known.query.get() == query.get()) return known;
        known = new Settings(session, query.isDefined() ? query.get() : null, broadcasts);
        latest = query.isDefined() ? known : null;
        return known;
    }

    /** A session's settings at one time, as readers take them. */
    private static final class Settings {
        final SparkSession session;
        final WeakReference query;
        final SQLConf conf;
        private final Configuration hadoop;
        private final Map ofScans;

        Settings(SparkSession session, Object query, Map broadcasts) {
            this.session = session;
            this.query = new WeakReference(query);
            conf = session.sessionState().conf().clone();
            for (int i = 0; i < OWN.length; i += 2) conf.setConfString(OWN[i], OWN[i + 1]);
            hadoop = session.sessionState().newHadoopConf();
            hadoop.set("parquet.read.support.class", "org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport");
            hadoop.set("spark.sql.session.timeZone", conf.sessionLocalTimeZone());
            for (int i = 0; i < FLAGS.length; i++) hadoop.set(FLAGS[i], conf.getConfString(FLAGS[i]));
            hadoop.setBoolean("parquet.page.verify-checksum.enabled", true);
            hadoop.setBoolean("spark.sql.parquet.fieldId.read.enabled", true);
            hadoop.setBoolean("spark.sql.parquet.fieldId.read.ignoreMissing", false);
            Map said = new HashMap();
            for (Iterator it = hadoop.iterator(); it.hasNext();) {
                Map.Entry entry = (Map.Entry) it.next();
                said.put(entry.getKey(), entry.getValue());
            }
            said.put("", session.sparkContext().applicationId());
            synchronized (broadcasts) {
                Map known = (Map) broadcasts.get(said);
                if (known == null) broadcasts.put(said, known = new Latest(MOST_BROADCASTS));
                ofScans = known;
            }
        }

        /**
         * Returns the broadcast of these settings and those of a scan, shared by all scans with equal ones: making it
         * costs more than the rest of a scan's start. Sharing is safe, because readers copy the settings for each file
         * and never change the original.
         */
        Broadcast broadcast(String schemaJson, boolean pages) {
            synchronized (ofScans) {
                Broadcast known = (Broadcast) ofScans.get(pages + schemaJson);
                if (known != null) return known;
                Configuration own = new Configuration(hadoop);
                own.set("org.apache.spark.sql.parquet.row.requested_schema", schemaJson);
                own.set("org.apache.spark.sql.parquet.row.attributes", schemaJson);
                if (!pages) own.setBoolean("parquet.filter.columnindex.enabled", false);
                scala.reflect.ClassTag tag = scala.reflect.ClassTag$.MODULE$.apply(SerializableConfiguration.class);
                known = session.sparkContext().broadcast(new SerializableConfiguration(own), tag);
                ofScans.put(pages + schemaJson, known);
                return known;
            }
        }
    }

    private static final class Latest extends LinkedHashMap {
        private final int most;

        Latest(int most) {
            super(16, 0.75f, true);
            this.most = most;
        }

        protected boolean removeEldestEntry(Map.Entry eldest) { return size() > most; }
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
