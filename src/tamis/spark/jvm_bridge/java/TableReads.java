package tamis;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Seq;

/**
 * Finds the Tamis tables that a query reads, in subqueries, too, and the scans by which it reads them.
 *
 * Takes a Dataset; gives keys of our objects (Handler.keyOf). Used by spark/write/own_reads.py.
 */
public final class TableReads {
    /** Returns the keys of the tables in the analyzed plan. */
    public List tables(org.apache.spark.sql.classic.Dataset rows) {
        List out = new ArrayList();
        collect(rows.queryExecution().analyzed(), false, out);
        return out;
    }

    /** Returns the keys of the scans in the optimized plan. */
    public List scans(org.apache.spark.sql.classic.Dataset rows) {
        List out = new ArrayList();
        collect(rows.queryExecution().optimizedPlan(), true, out);
        return out;
    }

    private static void collect(LogicalPlan plan, boolean scans, List out) {
        String key = null;
        if (!scans && plan instanceof DataSourceV2Relation) key = Handler.keyOf(((DataSourceV2Relation) plan).productElement(0));  // table() is ambiguous to Janino
        if (scans && plan instanceof DataSourceV2ScanRelation) key = Handler.keyOf(((DataSourceV2ScanRelation) plan).scan());
        if (key != null) out.add(key);
        for (int i = 0; i < plan.children().size(); i++) collect((LogicalPlan) plan.children().apply(i), scans, out);
        Seq inside = plan.subqueries();
        for (int i = 0; i < inside.size(); i++) collect((LogicalPlan) inside.apply(i), scans, out);
    }
}
