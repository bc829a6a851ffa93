package tamis;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.AppendDataExecV1;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** How Spark runs an UPDATE, MERGE or DELETE that it has rewritten into row changes: the changes are handed to Python as one DataFrame. */
public final class RowLevel {
    /** Plans row changes whose sink takes DataFrames; everything else is left to Spark. */
    public static final class Strategy extends SparkStrategy {
        public Seq apply(LogicalPlan plan) {
            List found = new ArrayList();
            if (plan instanceof WriteDelta) {
                WriteDelta delta = (WriteDelta) plan;
                Object write = delta.write().isDefined() ? delta.write().get() : null;
                if (write instanceof V1Write && Handler.keyOf(write) != null) {
                    DataSourceV2Relation relation = (DataSourceV2Relation) delta.productElement(0);  // table(), which Janino finds ambiguous
                    SupportsWrite table = (SupportsWrite) ((RowLevelOperationTable) relation.table()).table();
                    found.add(new AppendDataExecV1(table, delta.query(), new Refresh(delta.originalTable()), (V1Write) write));
                }
            }
            return CollectionConverters.asScala(found).toSeq();
        }
    }

    /** What is cached of the table is computed anew after it has changed. */
    public static final class Refresh extends scala.runtime.AbstractFunction0 {
        private final Object table;

        public Refresh(Object table) { this.table = table; }

        public Object apply() {
            SparkSession session = (SparkSession) SparkSession.active();
            session.sharedState().cacheManager().recacheByPlan(session, (LogicalPlan) table);
            return scala.runtime.BoxedUnit.UNIT;
        }
    }

    public SparkStrategy strategy() { return new Strategy(); }

    /**
     * Of the join that decides which rows of the scan behind this key match, what must be equal: expressions over the scan, and a DataFrame of the other side's.
     * Null where there is no such join, or where rows of the scan count that match nothing, or where the other side may say something else when it is asked twice.
     */
    public Object[] keys(org.apache.spark.sql.classic.Dataset rows, String key) {
        LogicalPlan plan = rows.queryExecution().optimizedPlan();
        List joins = new ArrayList();
        collect(plan, joins);
        for (int i = 0; i < joins.size(); i++) {
            Join join = (Join) joins.get(i);
            String type = join.joinType().sql();
            if (!scans(join.left(), key) || !(type.equals("INNER") || type.equals("RIGHT OUTER")) || !join.right().deterministic()) continue;
            scala.Option found = ExtractEquiJoinKeys$.MODULE$.unapply(join);
            if (found.isEmpty()) continue;
            scala.Product parts = (scala.Product) found.get();
            Seq left = (Seq) parts.productElement(1);
            Seq right = (Seq) parts.productElement(2);
            List named = new ArrayList();
            for (int k = 0; k < right.size(); k++)
                named.add(new Alias((Expression) right.apply(k), "k" + k, NamedExpression$.MODULE$.newExprId(), nothing(), scala.Option.empty(), nothing()));
            LogicalPlan asked = new Project(seq(named), join.right());
            return new Object[] {left, org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows((SparkSession) rows.sparkSession(), asked)};
        }
        return null;
    }

    /** Whether each row of the scan behind this key changes by what it holds itself, whatever other rows there are. */
    public boolean local(org.apache.spark.sql.classic.Dataset rows, String key) {
        LogicalPlan plan = rows.queryExecution().optimizedPlan();
        return scans(plan, key) && plan.deterministic() && !asks(plan);
    }

    /** Whether an expression of the plan is a query of its own. */
    private static boolean asks(LogicalPlan plan) {
        Seq expressions = plan.expressions();
        for (int i = 0; i < expressions.size(); i++)
            if (SubqueryExpression$.MODULE$.hasSubquery((Expression) expressions.apply(i))) return true;
        Seq children = plan.children();
        for (int i = 0; i < children.size(); i++) if (asks((LogicalPlan) children.apply(i))) return true;
        return false;
    }

    private static void collect(LogicalPlan plan, List out) {
        if (plan instanceof Join) out.add(plan);
        Seq children = plan.children();
        for (int i = 0; i < children.size(); i++) collect((LogicalPlan) children.apply(i), out);
    }

    /** Whether the plan is the scan with nothing but filters and projections over it. */
    private static boolean scans(LogicalPlan plan, String key) {
        if (plan instanceof DataSourceV2ScanRelation) return key.equals(Handler.keyOf(((DataSourceV2ScanRelation) plan).scan()));
        if (!(plan instanceof Project || plan instanceof Filter)) return false;
        return scans((LogicalPlan) plan.children().apply(0), key);
    }

    private static Seq seq(List items) { return CollectionConverters.asScala(items).toSeq(); }

    private static Seq nothing() { return seq(new ArrayList()); }
}
