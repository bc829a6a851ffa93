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
     * The join that decides which rows of the scan behind this key match: the left keys (expressions over the scan) and the join itself.
     * Null where there is no such join, or where rows of the scan that match nothing count too.
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
     * The right keys of the join as a DataFrame, and the rows of the statement, both over one and the same source.
     *
     * The source is computed for its keys and again for its rows. Catalyst calls a plan deterministic that need not give the same rows twice (RDDs, user
     * functions, files that somebody replaces). Such a source is computed once, into blocks that the executors hold; a lost block fails the statement.
     * Null where that cannot be: then nobody may ask for the keys.
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

    /** Whether a plan gives the same rows each time: projections, filters and unions of literal rows and of pinned versions of our tables, without user code. */
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

    /** The plan with one of its nodes, found by identity, replaced by a node of the same output. */
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
