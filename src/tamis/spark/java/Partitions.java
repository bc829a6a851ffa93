package tamis;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.util.ArrayList;
import java.util.OptionalLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetOptions;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/** The objects that a scan hands to Spark, each made in one call from one byte array or one text: Py4J calls are too dear to make them piecemeal. */
public final class Partitions {
    /** Estimates of a scan for Spark's optimiser. */
    public static final class Estimate implements Statistics {
        private final long bytes;
        private final long rows;

        public Estimate(long bytes, long rows) {
            this.bytes = bytes;
            this.rows = rows;
        }

        public OptionalLong sizeInBytes() { return OptionalLong.of(bytes); }

        public OptionalLong numRows() { return OptionalLong.of(rows); }
    }

    public Object estimate(long bytes, long rows) { return new Estimate(bytes, rows); }

    /** Partitions for Python workers. Big-endian: their number, then length and bytes of each. */
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

    /** Partitions of whole files. Big-endian: their number; for each the number of files; for each file its URL (length and UTF-8) and size. */
    public InputPartition[] files(byte[] packed) throws Exception {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(packed));
        InputPartition[] out = new InputPartition[in.readInt()];
        for (int i = 0; i < out.length; i++) {
            PartitionedFile[] files = new PartitionedFile[in.readInt()];
            for (int f = 0; f < files.length; f++) {
                byte[] url = new byte[in.readInt()];
                in.readFully(url);
                long size = in.readLong();
                SparkPath path = SparkPath.fromUrlString(new String(url, "UTF-8"));
                files[f] = new PartitionedFile(InternalRow.empty(), path, 0L, size, new String[0], 0L, size, noMap());
            }
            out[i] = new FilePartition(i, files);
        }
        return out;
    }

    /** Spark's own Parquet reader for the columns of a schema (Spark's JSON, column ids in the metadata of its fields). */
    public PartitionReaderFactory parquet(String schemaJson) {
        SparkSession session = (SparkSession) SparkSession.active();
        SQLConf conf = session.sessionState().conf();
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
        hadoop.setBoolean("spark.sql.parquet.fieldId.read.enabled", true);
        hadoop.setBoolean("spark.sql.parquet.fieldId.read.ignoreMissing", false);
        scala.reflect.ClassTag tag = scala.reflect.ClassTag$.MODULE$.apply(SerializableConfiguration.class);
        return new ParquetPartitionReaderFactory(
            conf, session.sparkContext().broadcast(new SerializableConfiguration(hadoop), tag), schema, schema, new StructType(),
            new org.apache.spark.sql.sources.Filter[0], scala.Option.empty(), new ParquetOptions(noMap(), conf));
    }

    /** What planning asks of the session: its settings under a prefix, Spark's split sizes, the parallelism; as name, value, name, value … */
    public ArrayList settings(String prefix) {
        SparkSession session = (SparkSession) SparkSession.active();
        SQLConf conf = session.sessionState().conf();
        ArrayList out = new ArrayList();
        scala.collection.Iterator it = conf.getAllConfs().iterator();
        while (it.hasNext()) {
            scala.Tuple2 entry = (scala.Tuple2) it.next();
            if (!((String) entry._1()).toLowerCase().startsWith(prefix)) continue;
            out.add(entry._1());
            out.add(entry._2());
        }
        String[] wanted = {"spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"};
        for (int i = 0; i < wanted.length; i++) {
            out.add(wanted[i]);
            out.add(conf.getConfString(wanted[i]));
        }
        out.add("parallelism");
        out.add(String.valueOf(session.sparkContext().defaultParallelism()));
        return out;
    }

    private static scala.collection.immutable.Map noMap() {
        return (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty();
    }
}
