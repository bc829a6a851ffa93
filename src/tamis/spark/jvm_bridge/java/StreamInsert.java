package tamis;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec;
import org.apache.spark.sql.execution.datasources.v2.WriteToDataSourceV2;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.execution.streaming.sources.MicroBatchWrite;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Passes each micro-batch written to a Tamis table to Python as one DataFrame, as foreachBatch does.
 *
 * Takes WriteToDataSourceV2 over a MicroBatchWrite whose sink is a proxy of ours; gives a command node that
 * calls Sink.addBatch. Installed by spark/streaming/stream_write.py.
 */
public final class StreamInsert {
    /** Plans micro-batches into our sinks. All other plans are left to Spark. */
    @SuppressWarnings("deprecation")  // the plan that Spark makes
    public static final class Strategy extends SparkStrategy {
        public Seq apply(LogicalPlan plan) {
            List found = new ArrayList();
            if (plan instanceof WriteToDataSourceV2 && ((WriteToDataSourceV2) plan).batchWrite() instanceof MicroBatchWrite) {
                WriteToDataSourceV2 asked = (WriteToDataSourceV2) plan;
                Object sink = ((MicroBatchWrite) asked.batchWrite()).writeSupport();
                if (sink instanceof Sink && Handler.keyOf(sink) != null) found.add(new Insert(new PlanLater(asked.query()), (Sink) sink));
            }
            return CollectionConverters.asScala(found).toSeq();
        }
    }

    /** Runs the batch's physical plan, which holds the query's state, and passes its rows to the sink. */
    public static final class Insert extends V2CommandExec {
        private final SparkPlan query;
        private final Sink sink;

        public Insert(SparkPlan query, Sink sink) {
            this.query = query;
            this.sink = sink;
        }

        public Seq run() {
            SparkSession session = session();
            long epoch = Long.parseLong(session.sparkContext().getLocalProperty("streaming.sql.batchId"));
            sink.addBatch(epoch, session.internalCreateDataFrame(query.execute(), query.schema(), false));
            return list(new ArrayList());
        }

        public Seq output() { return list(new ArrayList()); }

        public Seq children() {
            List one = new ArrayList();
            one.add(query);
            return list(one);
        }

        public SparkPlan withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
            return new Insert((SparkPlan) children.apply(0), sink);
        }

        public int productArity() { return 2; }

        public Object productElement(int at) { return at == 0 ? (Object) query : sink; }

        public boolean canEqual(Object other) { return other instanceof Insert; }

        private static Seq list(List items) { return CollectionConverters.asScala(items).toSeq(); }
    }

    public SparkStrategy strategy() { return new Strategy(); }
}
