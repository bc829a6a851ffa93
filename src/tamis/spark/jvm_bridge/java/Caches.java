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

/** What Spark has cached of tables of ours, in all sessions of the application. */
public final class Caches {
    /** The relations of ours in cached plans, each followed by the key of its table. Empty where there is no session any more. */
    public List relations() throws Exception {
        List out = new ArrayList();
        SparkSession session = session();
        if (session == null || session.sharedState().cacheManager().isEmpty()) return out;
        Method all = CacheManager.class.getDeclaredMethod("cachedData", new Class[0]);  // private: whoever caches is asked for one plan at a time
        all.setAccessible(true);
        Seq cached = (Seq) all.invoke(session.sharedState().cacheManager(), new Object[0]);
        for (int i = 0; i < cached.size(); i++) collect(((CachedData) cached.apply(i)).plan(), out);
        return out;
    }

    /** Sees to it that what is cached of the relation is computed anew, from the table as it is now, when it is asked for. */
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
            String key = Handler.keyOf(((DataSourceV2Relation) plan).productElement(0));  // table(), which Janino finds ambiguous
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
