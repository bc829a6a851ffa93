package tamis;

import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkThrowable;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.AccumulableInfo;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.storage.RDDInfo;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningExpression;
import org.apache.spark.sql.execution.InSubqueryExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase;
import org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec;
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.util.AccumulatorV2;

/**
 * SparkListener that records which Tamis scans each SQL execution had in its plan.
 *
 * Takes the executed physical plans (BatchScanExec and MicroBatchScanExec, also below adaptive stages, caches and subqueries). Gives
 * one line per scan, through drain(), to spark/scan/scan_metrics.py, which turns them into scan reports. A
 * line holds, separated by spaces: the execution id; the scan's key; the rows that it returned in this
 * execution; 1 if the scan is in the plan itself, 0 if below a cache; the execution's duration in
 * nanoseconds; its end in milliseconds since 1970; 1 if the scan got run-time filter values, else 0; 1 if a
 * stage of this execution read it, else 0; the condition of the error with which the execution ended, or -.
 *
 * Of an execution that failed before its first stage nothing is recorded: its plan may not exist, and asking for it
 * would plan the query again.
 *
 * Rows are summed from task ends. The plan's own metric cannot be used: the next execution of the same plan
 * resets it, possibly before the end of this one is reported.
 */
public final class Executions extends SparkListener {
    private static final int MOST = 10000;
    private static final String ROWS = "number of output rows";
    private static final Pattern RAISED = Pattern.compile("tamis\\.errors\\.\\w+: \\[(\\w+)\\]");
    private final ArrayDeque ended = new ArrayDeque();
    /** Stage id to execution id, for running executions. */
    private final Map stages = new HashMap();
    /** Execution id to (accumulator id to rows). */
    private final Map rows = new HashMap();
    /**
     * Execution id to the RDD ids of its submitted stages. A stage whose shuffle files exist is not
     * submitted.
     */
    private final Map begun = new HashMap();
    /** Called after each execution that had a scan; null if nobody listens. */
    private volatile Runnable after = null;
    private boolean recorded = false;

    public void onStageSubmitted(SparkListenerStageSubmitted event) {
        String execution = event.properties() == null ? null : event.properties().getProperty("spark.sql.execution.id");
        if (execution == null) return;
        stages.put(Integer.valueOf(event.stageInfo().stageId()), Long.valueOf(execution));
        Set ids = (Set) begun.get(Long.valueOf(execution));
        if (ids == null) begun.put(Long.valueOf(execution), ids = new HashSet());
        scala.collection.Iterator it = event.stageInfo().rddInfos().iterator();
        while (it.hasNext()) ids.add(Integer.valueOf(((RDDInfo) it.next()).id()));
    }

    public void onTaskEnd(SparkListenerTaskEnd event) {
        Object execution = stages.get(Integer.valueOf(event.stageId()));
        if (execution == null || event.taskInfo() == null || !event.taskInfo().successful()) return;
        Map sums = (Map) rows.get(execution);
        if (sums == null) rows.put(execution, sums = new HashMap());
        scala.collection.Iterator it = event.taskInfo().accumulables().iterator();
        while (it.hasNext()) {
            AccumulableInfo info = (AccumulableInfo) it.next();
            if (info.name().isEmpty() || info.update().isEmpty() || !ROWS.equals(info.name().get())) continue;
            Long before = (Long) sums.get(Long.valueOf(info.id()));
            long more = Long.parseLong(info.update().get().toString());
            sums.put(Long.valueOf(info.id()), Long.valueOf((before == null ? 0L : before.longValue()) + more));
        }
    }

    public void onOtherEvent(SparkListenerEvent event) {
        if (!(event instanceof SparkListenerSQLExecutionEnd)) return;
        SparkListenerSQLExecutionEnd end = (SparkListenerSQLExecutionEnd) event;
        Long execution = Long.valueOf(end.executionId());
        Map sums = (Map) rows.remove(execution);
        Set read = (Set) begun.remove(execution);
        stages.values().removeIf(new Same(execution));
        try {
            QueryExecution done = end.qe();
            if (done != null && (end.executionFailure().isEmpty() || read != null)) {
                walk(done.executedPlan(), end, sums == null ? new HashMap() : sums, read == null ? new HashSet() : read, true, new IdentityHashMap());
            }
        } catch (Throwable strangePlan) {
            return; // a missing report is better than a failed query
        } finally {
            tell();
        }
    }

    /** Calls the Runnable after each execution that had a scan. It must not wait for Spark's listeners. */
    public void afterwards(Runnable listener) { after = listener; }

    private void tell() {
        Runnable listener = after;
        if (listener == null || !recorded) return;
        recorded = false;
        try {
            listener.run();
        } catch (Throwable pythonIsGone) {
            after = null;
        }
    }

    /** Returns and forgets the lines recorded since the last call, oldest first. */
    public synchronized String drain() {
        StringBuilder out = new StringBuilder();
        while (!ended.isEmpty()) out.append((String) ended.removeFirst()).append('\n');
        return out.toString();
    }

    private synchronized void add(String line) {
        ended.addLast(line);
        recorded = true;
        if (ended.size() > MOST) ended.removeFirst();
    }

    private void walk(SparkPlan plan, SparkListenerSQLExecutionEnd end, Map sums, Set read, boolean direct, IdentityHashMap seen) {
        if (seen.put(plan, plan) != null || plan instanceof ReusedExchangeExec) return;
        if (plan instanceof AdaptiveSparkPlanExec) {
            walk(((AdaptiveSparkPlanExec) plan).executedPlan(), end, sums, read, direct, seen);
            dropped(((AdaptiveSparkPlanExec) plan).initialPlan(), end, sums, read, seen);
        } else if (plan instanceof QueryStageExec) {
            walk(((QueryStageExec) plan).plan(), end, sums, read, direct, seen);
        } else if (plan instanceof InMemoryTableScanExec) {
            walk(((InMemoryTableScanExec) plan).relation().cachedPlan(), end, sums, read, false, seen);
        } else if (plan instanceof BatchScanExec) {
            scan(plan, end, sums, read, direct);
        } else if (plan instanceof MicroBatchScanExec) {
            batch((MicroBatchScanExec) plan, end);
        }
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) walk((SparkPlan) children.next(), end, sums, read, direct, seen);
        scala.collection.Iterator below = plan.subqueries().iterator();
        while (below.hasNext()) walk((SparkPlan) below.next(), end, sums, read, direct, seen);
    }

    /**
     * Records scans that ran but left the plan: adaptive execution replaces a stage without rows by an empty
     * relation.
     */
    private void dropped(SparkPlan plan, SparkListenerSQLExecutionEnd end, Map sums, Set read, IdentityHashMap seen) {
        if (plan instanceof BatchScanExec && seen.put(plan, plan) == null && begun((BatchScanExec) plan, read)) scan(plan, end, sums, read, true);
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) dropped((SparkPlan) children.next(), end, sums, read, seen);
    }

    private void scan(SparkPlan plan, SparkListenerSQLExecutionEnd end, Map sums, Set read, boolean direct) {
        String key = Handler.keyOf(((DataSourceV2ScanExecBase) plan).scan());
        if (key == null) return;
        Object given = sums.get(Long.valueOf(((AccumulatorV2) plan.metrics().apply("numOutputRows")).id()));
        add(end.executionId() + " " + key + " " + (given == null ? "0" : given.toString()) + " " + (direct ? 1 : 0)
            + " " + end.duration() + " " + end.time() + " " + (keyed((BatchScanExec) plan) ? 1 : 0)
            + " " + (begun((BatchScanExec) plan, read) ? 1 : 0) + " " + problem(end));
    }

    /**
     * The code of the Tamis error that a Python worker raised, as its traceback says; else the condition of the innermost
     * error that has one; else the name of the outermost error's class; - of an execution that succeeded.
     */
    private static String problem(SparkListenerSQLExecutionEnd end) {
        if (end.executionFailure().isEmpty()) return "-";
        Throwable error = (Throwable) end.executionFailure().get();
        String found = null;
        for (Throwable at = error; at != null && at != at.getCause(); at = at.getCause()) {
            String condition = at instanceof SparkThrowable ? ((SparkThrowable) at).getCondition() : null;
            if (condition != null) found = condition;
            Matcher raised = at.getMessage() == null ? null : RAISED.matcher(at.getMessage());
            if (raised != null && raised.find()) return raised.group(1);
        }
        return found == null ? error.getClass().getName().replaceAll(".*\\.", "") : found;
    }

    /**
     * Records the scan of a micro-batch, whose key is that of its stream. Its tasks usually belong to an
     * execution inside of this one, so nothing else is known of it here.
     */
    private void batch(MicroBatchScanExec plan, SparkListenerSQLExecutionEnd end) {
        String key = Handler.keyOf(plan.stream());
        if (key != null) add(end.executionId() + " " + key + " 0 1 " + end.duration() + " " + end.time() + " 0 0 " + problem(end));
    }

    /**
     * Whether a stage contained the scan's RDD. Reads the field, because the accessor would create a missing
     * RDD.
     */
    private static boolean begun(BatchScanExec scan, Set read) {
        try {
            Field field = BatchScanExec.class.getDeclaredField("inputRDD");
            field.setAccessible(true);
            RDD made = (RDD) field.get(scan);
            return made != null && read.contains(Integer.valueOf(made.id()));
        } catch (Exception otherSpark) {
            return false; // only reports of scans without rows are lost
        }
    }

    /**
     * Whether a run-time filter of the scan got values. Spark drops the filters that it expects not to pay
     * off.
     */
    private static boolean keyed(BatchScanExec scan) {
        scala.collection.Iterator it = scan.runtimeFilters().iterator();
        while (it.hasNext()) {
            Object filter = it.next();
            if (filter instanceof DynamicPruningExpression && ((DynamicPruningExpression) filter).child() instanceof InSubqueryExec) return true;
        }
        return false;
    }

    private static final class Same implements java.util.function.Predicate {
        private final Object wanted;

        Same(Object wanted) { this.wanted = wanted; }

        public boolean test(Object other) { return wanted.equals(other); }
    }
}
