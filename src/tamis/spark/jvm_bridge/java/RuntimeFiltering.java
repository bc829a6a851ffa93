package tamis;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Replaces scans by their runtime-filtered scans where few join keys come.
 *
 * Lazily, a planning strategy, takes projections and filters over a Tamis scan and plans them over the
 * runtime-filtered scan of the same rows. Installed by spark/scan/join_keys.py (install_planning).
 */
public final class RuntimeFiltering {
    /**
     * Returns the strategy. "filteredScans" is called with a scan's key and "keys column"; it answers the runtime-filtered scan
     * or null.
     */
    public SparkStrategy strategy(BiFunction filteredScans) { return new Lazily(filteredScans); }

    /**
     * Replaces a scan by its runtime-filtered scan where few join keys come. Their number is known when adaptive execution
     * plans again after the other side has run. All other plans are left to Spark.
     */
    public static final class Lazily extends SparkStrategy {
        private final BiFunction filteredScans;
        private final Map known = new Latest(1000);
        private final Map none = new Latest(1000);

        Lazily(BiFunction filteredScans) { this.filteredScans = filteredScans; }

        public Seq apply(LogicalPlan plan) {
            try {
                if (plan instanceof Join) {
                    note(((Join) plan).left(), ((Join) plan).right());
                    note(((Join) plan).right(), ((Join) plan).left());
                } else if (plan instanceof Project || plan instanceof Filter) {
                    LogicalPlan other = runtimeFiltered(plan);
                    if (other != null) return new DataSourceV2Strategy((SparkSession) SparkSession.active()).apply(other);
                }
            } catch (RuntimeException strangePlan) {
                return seq(new ArrayList());
            }
            return seq(new ArrayList());
        }

        private synchronized void note(LogicalPlan side, LogicalPlan other) {
            LogicalPlan stage = side;
            while (stage instanceof Project || stage instanceof Filter) stage = (LogicalPlan) stage.children().apply(0);
            if (!(stage instanceof LogicalQueryStage) || stage.stats().rowCount().isEmpty()) return;
            Long rows = Long.valueOf(((scala.math.BigInt) stage.stats().rowCount().get()).longValue());
            List asked = new ArrayList();
            filters(other, asked);
            for (int i = 0; i < asked.size(); i++) {
                DynamicPruningSubquery one = (DynamicPruningSubquery) asked.get(i);
                if (((Expression) one.buildKeys().apply(0)).references().subsetOf(side.outputSet())) known.put(one.exprId(), rows);
            }
        }

        private static void filters(LogicalPlan plan, List out) {
            if (plan instanceof Filter) questions(((Filter) plan).condition(), out);
            for (int i = 0; i < plan.children().size(); i++) filters((LogicalPlan) plan.children().apply(i), out);
        }

        private synchronized LogicalPlan runtimeFiltered(LogicalPlan plan) {
            scala.Option found = PhysicalOperation$.MODULE$.unapply(plan);
            if (found.isEmpty()) return null;
            scala.Tuple3 parts = (scala.Tuple3) found.get();
            String key = parts._3() instanceof DataSourceV2ScanRelation ? Handler.keyOf(((DataSourceV2ScanRelation) parts._3()).scan()) : null;
            if (key == null) return null;
            Seq filters = (Seq) parts._2();
            for (int i = 0; i < filters.size(); i++) {
                if (!(filters.apply(i) instanceof DynamicPruningSubquery)) continue;
                DynamicPruningSubquery asked = (DynamicPruningSubquery) filters.apply(i);
                Object rows = known.get(asked.exprId());
                if (rows == null || !(asked.pruningKey() instanceof Attribute)) continue;
                Object scan = runtimeFiltered(key, rows + " " + ((Attribute) asked.pruningKey()).name());
                if (scan instanceof Scan) return replaced(plan, (Scan) scan);
            }
            return null;
        }

        /**
         * Returns the runtime-filtered scan or null. Remembers null answers, because adaptive execution plans the same query
         * many times.
         */
        private Object runtimeFiltered(String key, String asked) {
            if (none.containsKey(key + " " + asked)) return null;
            Object found = filteredScans.apply(key, asked);
            if (found == null) none.put(key + " " + asked, null);
            return found;
        }

        private static LogicalPlan replaced(LogicalPlan plan, Scan scan) {
            if (!(plan instanceof DataSourceV2ScanRelation)) {
                List one = new ArrayList();
                one.add(replaced((LogicalPlan) plan.children().apply(0), scan));
                return (LogicalPlan) plan.withNewChildren(seq(one));
            }
            Object[] args = new Object[plan.productArity()];
            for (int i = 0; i < args.length; i++) args[i] = plan.productElement(i) instanceof Scan ? scan : plan.productElement(i);
            return (LogicalPlan) plan.makeCopy(args);
        }
    }

    private static final class Latest extends LinkedHashMap {
        private final int most;

        Latest(int most) { this.most = most; }

        protected boolean removeEldestEntry(Map.Entry eldest) { return size() > most; }
    }

    private static void questions(Expression condition, List out) {
        if (condition instanceof DynamicPruningSubquery) out.add(condition);
        for (int i = 0; i < condition.children().size(); i++) questions((Expression) condition.children().apply(i), out);
    }

    private static Seq seq(List items) { return CollectionConverters.asScala(items).toSeq(); }
}
