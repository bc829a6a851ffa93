package tamis;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CachedData;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.collection.immutable.Seq;

/**
 * Finds cached plans that read Tamis tables, and has Spark compute them again.
 *
 * Takes the cached logical plans of the application's shared CacheManager; gives their DataSourceV2Relation
 * nodes over our tables. Used by spark/catalog/spark_caches.py after every commit of this process.
 */
public final class Caches {
    /**
     * Returns each cached relation over a Tamis table, followed by its table's key. Empty if no session is
     * left.
     */
    public List relations() throws Exception {
        List out = new ArrayList();
        SparkSession session = session();
        if (session == null || session.sharedState().cacheManager().isEmpty()) return out;
        // Private in Spark, whose public methods look up one given plan at a time.
        Method all = CacheManager.class.getDeclaredMethod("cachedData", new Class[0]);
        all.setAccessible(true);
        Seq cached = (Seq) all.invoke(session.sharedState().cacheManager(), new Object[0]);
        for (int i = 0; i < cached.size(); i++) collect(((CachedData) cached.apply(i)).plan(), out);
        return out;
    }

    /**
     * Invalidates cached plans over the relation: they are computed again from the current table on their
     * next use.
     */
    public void recache(Object relation) {
        SparkSession session = session();
        CacheManager manager = session == null ? null : session.sharedState().cacheManager();
        if (manager != null) manager.recacheByPlan(session, (LogicalPlan) relation);
    }

    private static SparkSession session() {
        scala.Option found = SparkSession.getActiveSession();
        if (found.isEmpty()) found = SparkSession.getDefaultSession();
        SparkSession session = found.isEmpty() ? null : (SparkSession) found.get();
        return session == null || session.sparkContext().isStopped() ? null : session;
    }

    private static void collect(LogicalPlan plan, List out) {
        if (plan instanceof DataSourceV2Relation) {
            String key = Handler.keyOf(((DataSourceV2Relation) plan).productElement(0));  // table() is ambiguous to Janino
            if (key != null) {
                out.add(plan);
                out.add(key);
            }
        }
        for (int i = 0; i < plan.children().size(); i++) collect((LogicalPlan) plan.children().apply(i), out);
        scala.collection.immutable.Seq inside = plan.subqueries();
        for (int i = 0; i < inside.size(); i++) collect((LogicalPlan) inside.apply(i), out);
    }
}
