package tamis;

import org.apache.spark.JobArtifactSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/**
 * Lets a job hand rows to Python without Spark's limit on the bytes of an Arrow batch.
 *
 * Used by spark/write/narrow_rows.py. Spark reads the limit from the session that runs a plan, so the job gets a session
 * of its own: a clone of the user's, with the same settings but for the two below.
 */
public final class ArrowBatches {
    private static final String BYTES = "spark.sql.execution.arrow.maxBytesPerBatch";
    private static final String ISOLATION = "spark.sql.artifact.isolation.enabled";
    private static final String ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch";

    /**
     * Returns the rows in a session whose batches have at most "most" rows and no limit of bytes, or null.
     *
     * Null where the user has set a limit of bytes, where the job may not run twice, where more than its last step would
     * lose the limit, and where a clone would be slow.
     */
    public Dataset withoutByteLimit(Dataset rows, int most) {
        SparkSession session = rows.sparkSession();
        SQLConf conf = session.sessionState().conf();
        LogicalPlan plan = rows.queryExecution().analyzed();
        boolean streams = session.sparkContext().getLocalProperty("sql.streaming.queryId") != null;
        if (conf.contains(BYTES) || streams || isolated(conf) || keepsLimit(plan)) return null;
        SparkSession clone = session.cloneSession();
        SQLConf changed = clone.sessionState().conf();
        int count = changed.arrowMaxRecordsPerBatch();
        changed.setConfString(BYTES, String.valueOf(Integer.MAX_VALUE));
        changed.setConfString(ROWS, String.valueOf(count <= 0 ? most : Math.min(count, most)));
        return Dataset.ofRows(clone, plan);
    }

    /** Whether Spark starts a Python daemon for each session, so that a clone would have to wait for one of its own. */
    private static boolean isolated(SQLConf conf) {
        return conf.getConfString(ISOLATION, "false").equals("true") || JobArtifactSet.getCurrentJobArtifactState().isDefined();
    }

    /** Whether a part of the plan hands rows to Python itself, or reports metrics, which a second run would repeat. */
    private static boolean keepsLimit(LogicalPlan plan) {
        if (plan instanceof CollectMetrics || plan.isStreaming() || namesPython(plan)) return true;
        Seq expressions = plan.expressions();
        for (int i = 0; i < expressions.size(); i++) if (callsPython((Expression) expressions.apply(i))) return true;
        for (int i = 0; i < plan.children().size(); i++) if (keepsLimit((LogicalPlan) plan.children().apply(i))) return true;
        Seq inside = plan.subqueries();
        for (int i = 0; i < inside.size(); i++) if (keepsLimit((LogicalPlan) inside.apply(i))) return true;
        return false;
    }

    private static boolean callsPython(Expression expression) {
        if (namesPython(expression)) return true;
        for (int i = 0; i < expression.children().size(); i++) if (callsPython((Expression) expression.children().apply(i))) return true;
        return false;
    }

    /** Whether a node runs functions in another process. Their classes differ between releases of Spark, so names tell. */
    private static boolean namesPython(Object node) {
        String name = node.getClass().getSimpleName();
        String[] words = new String[] {"Python", "Pandas", "Arrow", "External", "InR"};
        for (int i = 0; i < words.length; i++) if (name.contains(words[i])) return true;
        return false;
    }
}
