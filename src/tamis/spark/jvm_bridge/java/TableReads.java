package tamis;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Seq;

/**
 * Finds the Tamis tables that a query reads, in subqueries, too, and the scans by which it reads them.
 *
 * Takes a Dataset; gives keys of our objects (Handler.keyOf), and the names of the functions by which DataFrames of
 * embedded scans read (scan_frame.py), which no node of ours shows. Used by spark/write/own_reads.py.
 */
public final class TableReads {
    /** Returns the keys of the tables in the plan as it was analyzed. */
    public List tables(org.apache.spark.sql.classic.Dataset rows) {
        List out = new ArrayList();
        collect(rows.queryExecution().analyzed(), false, out);
        return out;
    }

    /** Returns the keys of the tables in the plan as it will run: a Spark that loads tables again has done so. */
    public List tablesToRead(org.apache.spark.sql.classic.Dataset rows) throws Exception {
        List out = new ArrayList();
        QueryExecution execution = rows.queryExecution();
        LogicalPlan plan = execution.analyzed();
        try {
            plan = (LogicalPlan) QueryExecution.class.getMethod("tableVersionsRefreshed", new Class[0]).invoke(execution, new Object[0]);
        } catch (NoSuchMethodException e) {
            // an older Spark reads the version that a table had when it was analyzed
        }
        collect(plan, false, out);
        return out;
    }

    /** Returns the keys of the scans in the optimized plan, and of those that made what it reads from a cache. */
    public List scans(org.apache.spark.sql.classic.Dataset rows) {
        List out = new ArrayList();
        collect(rows.queryExecution().optimizedPlan(), true, out);
        return out;
    }

    private static void collect(LogicalPlan plan, boolean scans, List out) {
        functions(plan, out);
        if (!scans && plan instanceof DataSourceV2Relation) add(((DataSourceV2Relation) plan).productElement(0), out);  // table() is ambiguous to Janino
        if (scans && plan instanceof DataSourceV2ScanRelation) add(((DataSourceV2ScanRelation) plan).scan(), out);
        if (scans && plan instanceof InMemoryRelation) cached(((InMemoryRelation) plan).cacheBuilder().cachedPlan(), out);
        for (int i = 0; i < plan.children().size(); i++) collect((LogicalPlan) plan.children().apply(i), scans, out);
        Seq inside = plan.subqueries();
        for (int i = 0; i < inside.size(); i++) collect((LogicalPlan) inside.apply(i), scans, out);
    }

    private static void cached(SparkPlan plan, List out) {
        if (plan instanceof AdaptiveSparkPlanExec) {
            cached(((AdaptiveSparkPlanExec) plan).executedPlan(), out);
            return;
        }
        if (plan instanceof QueryStageExec) {
            cached(((QueryStageExec) plan).plan(), out);
            return;
        }
        functions(plan, out);
        if (plan instanceof InMemoryTableScanExec) cached(((InMemoryTableScanExec) plan).relation().cacheBuilder().cachedPlan(), out);
        if (plan instanceof DataSourceV2ScanExecBase) add(((DataSourceV2ScanExecBase) plan).scan(), out);
        for (int i = 0; i < plan.children().size(); i++) cached((SparkPlan) plan.children().apply(i), out);
        Seq inside = plan.subqueries();
        for (int i = 0; i < inside.size(); i++) cached((SparkPlan) inside.apply(i), out);
    }

    private static void functions(QueryPlan plan, List out) {
        Seq expressions = plan.expressions();
        for (int i = 0; i < expressions.size(); i++) {
            Object one = expressions.apply(i);
            if (one instanceof PythonUDF && ((PythonUDF) one).name().startsWith("tamis_scan ")) out.add(((PythonUDF) one).name());
        }
    }

    private static void add(Object object, List out) {
        String key = Handler.keyOf(object);
        if (key != null) out.add(key);
    }
}
