package tamis;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.objects.InvokeLike;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.Union;
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

/**
 * Runs an UPDATE, MERGE or DELETE that Spark has rewritten into row changes.
 *
 * Strategy takes a WriteDelta whose write is a proxy of ours; gives AppendDataExecV1, which passes the
 * changes to Python as one DataFrame. join and keys find the join of a MERGE and the source's keys, by which
 * its target scan is pruned; local tells whether a statement depends on its own rows only. Used by
 * spark/write/row_level_operations.py and spark/write/merge_pruning.py.
 */
public final class RowLevel {
    /** Plans row changes into our tables. All other plans are left to Spark. */
    public static final class Strategy extends SparkStrategy {
        public Seq apply(LogicalPlan plan) {
            List found = new ArrayList();
            if (plan instanceof WriteDelta) {
                WriteDelta delta = (WriteDelta) plan;
                Object write = delta.write().isDefined() ? delta.write().get() : null;
                if (write instanceof V1Write && Handler.keyOf(write) != null) {
                    DataSourceV2Relation relation = (DataSourceV2Relation) delta.productElement(0);  // table() is ambiguous to Janino
                    SupportsWrite table = (SupportsWrite) ((RowLevelOperationTable) relation.table()).table();
                    found.add(new AppendDataExecV1(table, delta.query(), new Refresh(delta.originalTable()), (V1Write) write));
                }
            }
            return CollectionConverters.asScala(found).toSeq();
        }
    }

    /** Invalidates Spark's caches over the table after the write. */
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
     * Returns the left keys (expressions over the scan) and the join that decides which rows of the scan with
     * this key match. Null if there is no such join, or if rows of the scan without a match matter too.
     */
    public Object[] join(org.apache.spark.sql.classic.Dataset rows, String key) {
        List joins = new ArrayList();
        collect(rows.queryExecution().optimizedPlan(), joins);
        for (int i = 0; i < joins.size(); i++) {
            Join join = (Join) joins.get(i);
            String type = join.joinType().sql();
            if (!scans(join.left(), key) || !(type.equals("INNER") || type.equals("RIGHT OUTER")) || !join.right().deterministic()) continue;
            scala.Option found = ExtractEquiJoinKeys$.MODULE$.unapply(join);
            if (!found.isEmpty()) return new Object[] {((scala.Product) found.get()).productElement(1), join};
        }
        return null;
    }

    /**
     * Returns the join's right keys and the statement's rows as two DataFrames over the same source.
     *
     * The source runs once for its keys and again for its rows. Catalyst also calls plans deterministic that
     * may return other rows the second time (RDDs, user functions, files that are replaced). Such a source is
     * computed once, into blocks on the executors (localCheckpoint); a lost block fails the statement.
     * Returns null if the source cannot be replaced in the plan: then the keys must not be used.
     */
    public Object[] keys(org.apache.spark.sql.classic.Dataset rows, Join join) {
        SparkSession session = (SparkSession) rows.sparkSession();
        LogicalPlan plan = rows.queryExecution().optimizedPlan();
        LogicalPlan source = join.right();
        if (!repeatable(source)) {
            org.apache.spark.sql.classic.Dataset once = org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(session, source);
            source = ((org.apache.spark.sql.classic.Dataset) once.localCheckpoint(true)).queryExecution().analyzed();
            LogicalPlan over = replaced(plan, join.right(), source);
            if (over == plan) return null;
            plan = over;
        }
        Seq right = (Seq) ((scala.Product) ExtractEquiJoinKeys$.MODULE$.unapply(join).get()).productElement(2);
        List named = new ArrayList();
        for (int k = 0; k < right.size(); k++)
            named.add(new Alias((Expression) right.apply(k), "k" + k, NamedExpression$.MODULE$.newExprId(), nothing(), scala.Option.empty(), nothing()));
        LogicalPlan asked = new Project(seq(named), source);
        return new Object[] {
            org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(session, asked), org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(session, plan)
        };
    }

    /**
     * Whether a plan returns the same rows each time: projections, filters and unions over literal rows,
     * ranges and scans of Tamis tables (each pinned to a version), without user code or subqueries.
     */
    private static boolean repeatable(LogicalPlan plan) {
        Seq expressions = plan.expressions();
        for (int i = 0; i < expressions.size(); i++) if (userCode((Expression) expressions.apply(i))) return false;
        if (plan instanceof LocalRelation || plan instanceof Range || plan instanceof OneRowRelation) return true;
        if (plan instanceof DataSourceV2ScanRelation) return Handler.keyOf(((DataSourceV2ScanRelation) plan).scan()) != null;
        if (!(plan instanceof Project || plan instanceof Filter || plan instanceof Union)) return false;
        Seq children = plan.children();
        for (int i = 0; i < children.size(); i++) if (!repeatable((LogicalPlan) children.apply(i))) return false;
        return true;
    }

    private static boolean userCode(Expression expression) {
        if (expression instanceof UserDefinedExpression || expression instanceof InvokeLike || SubqueryExpression$.MODULE$.hasSubquery(expression)) return true;
        Seq children = expression.children();
        for (int i = 0; i < children.size(); i++) if (userCode((Expression) children.apply(i))) return true;
        return false;
    }

    /** Returns the plan with one node, found by identity, replaced by a node with the same output. */
    private static LogicalPlan replaced(LogicalPlan plan, LogicalPlan old, LogicalPlan made) {
        if (plan == old) return made;
        List children = new ArrayList();
        boolean changed = false;
        for (int i = 0; i < plan.children().size(); i++) {
            LogicalPlan before = (LogicalPlan) plan.children().apply(i);
            LogicalPlan after = replaced(before, old, made);
            changed |= before != after;
            children.add(after);
        }
        return changed ? (LogicalPlan) plan.withNewChildren(seq(children)) : plan;
    }

    /** Whether the change to each row of the scan with this key depends on that row alone. */
    public boolean local(org.apache.spark.sql.classic.Dataset rows, String key) {
        LogicalPlan plan = rows.queryExecution().optimizedPlan();
        return scans(plan, key) && plan.deterministic() && !asks(plan);
    }

    /** Whether an expression of the plan contains a subquery. */
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

    /** Whether the plan is the scan with this key under filters and projections only. */
    private static boolean scans(LogicalPlan plan, String key) {
        if (plan instanceof DataSourceV2ScanRelation) return key.equals(Handler.keyOf(((DataSourceV2ScanRelation) plan).scan()));
        if (!(plan instanceof Project || plan instanceof Filter)) return false;
        return scans((LogicalPlan) plan.children().apply(0), key);
    }

    private static Seq seq(List items) { return CollectionConverters.asScala(items).toSeq(); }

    private static Seq nothing() { return seq(new ArrayList()); }
}
