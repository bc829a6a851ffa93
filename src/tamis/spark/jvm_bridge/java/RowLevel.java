package tamis;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.objects.InvokeLike;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.BaseEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeRows;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.connector.write.V1Write;
import org.apache.spark.sql.execution.LogicalRDD;
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
 * its target scan is pruned, and forgetAnswers lets it be pruned by other keys; local tells whether a statement depends on its own rows only. Used by
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
     * Returns the row changes alone. Spark computes the Python functions of a statement's condition once more over the
     * changed rows, and adds the values as further columns.
     */
    public org.apache.spark.sql.classic.Dataset changesAlone(org.apache.spark.sql.classic.Dataset rows) {
        LogicalPlan plan = rows.queryExecution().analyzed();
        LogicalPlan alone = plan;
        while (alone instanceof BaseEvalPython) alone = (LogicalPlan) alone.children().apply(0);
        return alone == plan ? rows : org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows((SparkSession) rows.sparkSession(), alone);
    }

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
     * Returns the join's right keys and the statement's rows as two DataFrames over the same source, and the RDD
     * that holds the source's rows, or null.
     *
     * The source runs once for its keys and again for its rows. Catalyst also calls plans deterministic that
     * may return other rows the second time (RDDs, user functions, files that are replaced). Such a source is
     * computed once, into blocks on the executors (localCheckpoint), which are lost with their executor.
     * Returns null if the source cannot be replaced in the plan: then the keys must not be used.
     */
    public Object[] keys(org.apache.spark.sql.classic.Dataset rows, Join join) {
        SparkSession session = (SparkSession) rows.sparkSession();
        LogicalPlan plan = rows.queryExecution().optimizedPlan();
        LogicalPlan source = join.right();
        Object held = null;
        if (!repeatable(source)) {
            org.apache.spark.sql.classic.Dataset once = org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(session, source);
            source = ((org.apache.spark.sql.classic.Dataset) once.localCheckpoint(true)).queryExecution().analyzed();
            LogicalPlan over = replaced(plan, join.right(), source);
            if (over == plan) return null;
            plan = over;
            held = ((LogicalRDD) source).rdd();
        }
        Seq right = (Seq) ((scala.Product) ExtractEquiJoinKeys$.MODULE$.unapply(join).get()).productElement(2);
        List named = new ArrayList();
        for (int k = 0; k < right.size(); k++)
            named.add(new Alias((Expression) right.apply(k), "k" + k, NamedExpression$.MODULE$.newExprId(), nothing(), scala.Option.empty(), nothing()));
        LogicalPlan asked = new Project(seq(named), source);
        return new Object[] {
            org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(session, asked), org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows(session, plan), held
        };
    }

    /** Returns the rows as a statement of its own would read them now: plans that were made before keep their versions. */
    public org.apache.spark.sql.classic.Dataset plannedAnew(org.apache.spark.sql.classic.Dataset rows) {
        return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows((SparkSession) rows.sparkSession(), rows.queryExecution().commandExecuted());
    }

    /**
     * Returns rows that are computed once, in blocks on the executors, and the RDD of the blocks; the rows themselves
     * and null if they are the same each time.
     */
    public Object[] computedOnce(org.apache.spark.sql.classic.Dataset rows) {
        if (constant(rows.queryExecution().commandExecuted())) return new Object[] {rows, null};
        org.apache.spark.sql.classic.Dataset once = (org.apache.spark.sql.classic.Dataset) rows.localCheckpoint(true);
        return new Object[] {once, ((LogicalRDD) once.queryExecution().analyzed()).rdd()};
    }

    /**
     * Whether each statement over an analyzed plan gets the same rows: literal rows, ranges and checkpoints, and columns
     * of them. Statements plan on their own: each may pin another version of a table, and has its own current time.
     */
    private static boolean constant(LogicalPlan plan) {
        if (plan instanceof LocalRelation || plan instanceof Range || plan instanceof OneRowRelation) return true;
        if (plan instanceof LogicalRDD) return ((LogicalRDD) plan).rdd().isCheckpointed();
        if (!(plan instanceof Project)) return false;
        Seq expressions = plan.expressions();
        for (int i = 0; i < expressions.size(); i++) if (!(expressions.apply(i) instanceof Attribute)) return false;
        return constant((LogicalPlan) plan.children().apply(0));
    }

    /** Makes the scan with this key answer anew, for it is about to be planned by other keys. */
    public void forgetAnswers(org.apache.spark.sql.classic.Dataset rows, String key) {
        forgetAnswers(rows.queryExecution().optimizedPlan(), key);
    }

    private static void forgetAnswers(LogicalPlan plan, String key) {
        if (plan instanceof DataSourceV2ScanRelation && key.equals(Handler.keyOf(((DataSourceV2ScanRelation) plan).scan())))
            Handler.forgetAnswers(((DataSourceV2ScanRelation) plan).scan());
        Seq children = plan.children();
        for (int i = 0; i < children.size(); i++) forgetAnswers((LogicalPlan) children.apply(i), key);
    }

    /**
     * Whether a plan returns the same rows each time: projections, filters and unions over literal rows,
     * ranges, checkpoints and scans of Tamis tables (each pinned to a version), without user code or subqueries.
     */
    private static boolean repeatable(LogicalPlan plan) {
        Seq expressions = plan.expressions();
        for (int i = 0; i < expressions.size(); i++) if (userCode((Expression) expressions.apply(i))) return false;
        if (plan instanceof LocalRelation || plan instanceof Range || plan instanceof OneRowRelation) return true;
        if (plan instanceof LogicalRDD) return ((LogicalRDD) plan).rdd().isCheckpointed();
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

    /**
     * Returns the rows with NULL in the columns of the table named that a statement leaves as they are in the
     * scan with this key. Spark hands over their old values, which would look like values that it assigns.
     */
    public org.apache.spark.sql.classic.Dataset withoutKept(org.apache.spark.sql.classic.Dataset rows, List names, String key) {
        LogicalPlan plan = rows.queryExecution().optimizedPlan();
        List kept = new ArrayList();
        scanned(plan, names, key, kept);
        LogicalPlan top = plan;
        while (!(top instanceof MergeRows) && top.children().size() == 1) top = (LogicalPlan) top.children().apply(0);
        if (!(top instanceof MergeRows)) top = belowChecks(plan);
        LogicalPlan made = top instanceof MergeRows ? merged((MergeRows) top, names, kept) : projected(top, names, kept);
        if (made == top) return rows;
        return org.apache.spark.sql.classic.Dataset$.MODULE$.ofRows((SparkSession) rows.sparkSession(), replaced(plan, top, made));
    }

    /** Whether the rows have, in this column of the table, another value than one of the scans has, or than none. */
    public boolean assigns(org.apache.spark.sql.classic.Dataset rows, String name, List keys) {
        LogicalPlan plan = rows.queryExecution().optimizedPlan();
        List names = new ArrayList();
        names.add(name);
        List kept = new ArrayList();
        for (int i = 0; i < keys.size(); i++) scanned(plan, names, (String) keys.get(i), kept);
        LogicalPlan top = plan;
        while (!(top instanceof MergeRows) && top.children().size() == 1) top = (LogicalPlan) top.children().apply(0);
        if (top instanceof MergeRows) {
            MergeRows merge = (MergeRows) top;
            return given(merge, merge.matchedInstructions(), names, kept, false)
                || given(merge, merge.notMatchedBySourceInstructions(), names, kept, false)
                || given(merge, merge.notMatchedInstructions(), names, kept, true);
        }
        top = belowChecks(plan);
        if (!(top instanceof Project)) return !(top instanceof LocalRelation);
        Seq list = ((Project) top).projectList();
        for (int i = 0; i < list.size(); i++)
            if (((Attribute) top.output().apply(i)).name().equals(name)) return !isKept((Expression) list.apply(i), top.output().apply(i), names, kept);
        return true;
    }

    /** Returns the plan that computes the new rows: Spark tests CHECK constraints above it if a value is not deterministic. */
    private static LogicalPlan belowChecks(LogicalPlan plan) {
        while (plan instanceof Filter) plan = (LogicalPlan) plan.children().apply(0);
        return plan;
    }

    private static boolean given(MergeRows plan, Seq instructions, List names, List kept, boolean inserts) {
        for (int k = 0; k < instructions.size(); k++) {
            Expression instruction = (Expression) instructions.apply(k);
            Seq children = instruction.children();
            String kind = instruction.getClass().getSimpleName();
            if (kind.startsWith("Discard")) continue;
            if (!kind.equals("Keep") || children.size() != plan.output().size() + 1) return true;
            for (int i = 1; i < children.size(); i++) {
                Object column = plan.output().apply(i - 1);
                Expression value = (Expression) children.apply(i);
                if (!names.contains(((Attribute) column).name()) || isKept(value, column, names, kept)) continue;
                if (!(value instanceof Literal) || ((Literal) value).value() != null || !inserts && !deletes(children)) return true;
            }
        }
        return false;
    }

    /** Whether the values of an instruction are those of a row that is deleted, whose first value is the operation. */
    private static boolean deletes(Seq children) {
        Expression operation = (Expression) children.apply(1);
        return operation instanceof Literal && Integer.valueOf(1).equals(((Literal) operation).value());
    }

    private static LogicalPlan projected(LogicalPlan plan, List names, List kept) {
        if (!(plan instanceof Project)) return plan;
        Seq before = ((Project) plan).projectList();
        List after = new ArrayList();
        boolean changed = false;
        for (int i = 0; i < before.size(); i++) {
            Expression one = (Expression) before.apply(i);
            boolean gone = isKept(one, plan.output().apply(i), names, kept);
            changed |= gone;
            after.add(gone ? new Alias(Literal$.MODULE$.create(null, one.dataType()), ((AttributeReference) one).name(), ((AttributeReference) one).exprId(), nothing(), scala.Option.empty(), nothing()) : one);
        }
        return changed ? new Project(seq(after), ((Project) plan).child()) : plan;
    }

    private static LogicalPlan merged(MergeRows plan, List names, List kept) {
        return plan.copy(plan.isSourceRowPresent(), plan.isTargetRowPresent(), instructions(plan, plan.matchedInstructions(), names, kept),
            plan.notMatchedInstructions(), instructions(plan, plan.notMatchedBySourceInstructions(), names, kept),
            plan.checkCardinality(), plan.output(), plan.child());
    }

    private static Seq instructions(MergeRows plan, Seq given, List names, List kept) {
        List out = new ArrayList();
        for (int k = 0; k < given.size(); k++) {
            Expression instruction = (Expression) given.apply(k);
            Seq children = instruction.children();  // of Keep: the condition, then a value for each column
            if (instruction.getClass().getSimpleName().equals("Keep") && children.size() == plan.output().size() + 1) {
                List values = new ArrayList();
                values.add(children.apply(0));
                for (int i = 1; i < children.size(); i++) {
                    Expression one = (Expression) children.apply(i);
                    values.add(isKept(one, plan.output().apply(i - 1), names, kept) ? Literal$.MODULE$.create(null, one.dataType()) : one);
                }
                instruction = (Expression) instruction.withNewChildren(seq(values));
            }
            out.add(instruction);
        }
        return seq(out);
    }

    /** Whether an output column of this name is the scan's own column. */
    private static boolean isKept(Expression value, Object column, List names, List kept) {
        if (!(value instanceof AttributeReference) || !names.contains(((AttributeReference) value).name())) return false;
        return ((AttributeReference) value).name().equals(((Attribute) column).name()) && kept.contains(((AttributeReference) value).exprId());
    }

    private static void scanned(LogicalPlan plan, List names, String key, List out) {
        if (plan instanceof DataSourceV2ScanRelation && key.equals(Handler.keyOf(((DataSourceV2ScanRelation) plan).scan()))) {
            Seq columns = plan.output();
            for (int i = 0; i < columns.size(); i++)
                if (names.contains(((Attribute) columns.apply(i)).name())) out.add(((Attribute) columns.apply(i)).exprId());
        }
        Seq children = plan.children();
        for (int i = 0; i < children.size(); i++) scanned((LogicalPlan) children.apply(i), names, key, out);
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
