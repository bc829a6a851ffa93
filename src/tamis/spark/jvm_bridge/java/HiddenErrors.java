package tamis;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.BinaryComparison;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;

/**
 * Finds key filters that could hide an error: rows that they skip would have failed in a condition between the
 * scan and the join that gives the keys.
 *
 * The scan itself keeps rows for which a filter right above it can fail, but Spark does not tell it of those with
 * subqueries, nor of those above or in other joins. An expression of a projection or aggregate may fail for the
 * rows that are left only, as under Spark's own partition pruning. Used by JoinPlanning.
 */
public final class HiddenErrors {
    /** Returns a function of a plan: a set of its DynamicPruningSubquery expressions that could hide an error. */
    public UnaryOperator search() { return new Search(); }

    private static final class Search implements UnaryOperator {
        public Object apply(Object plan) {
            Walk walk = new Walk();
            walk.pending((LogicalPlan) plan);
            return walk.hiding;
        }
    }

    /** What cannot fail if its operands cannot. Whatever is not here can. */
    private static final Set SAFE = new HashSet(Arrays.asList(new String[] {
        "AttributeReference", "Literal", "And", "Or", "Not", "IsNull", "IsNotNull", "IsNaN", "In", "InSet", "Coalesce",
        "If", "CaseWhen", "StartsWith", "EndsWith", "Contains", "Upper", "Lower", "Substring", "StringTrim", "Length",
        "Year", "Quarter", "Month", "DayOfMonth", "DateAdd", "DateSub", "KnownFloatingPointNormalized",
        "NormalizeNaNAndZero", "ScalarSubquery", "DynamicPruningSubquery"}));
    private static final Set ARITHMETIC = new HashSet(Arrays.asList(new String[] {"Add", "Subtract", "Multiply"}));

    private static final class Walk {
        private final Set hiding = new HashSet();

        /** Returns the key filters below a plan whose join is above it. */
        private List pending(LogicalPlan plan) {
            if (plan instanceof Join) return beside((Join) plan);
            List asked = new ArrayList();
            for (int i = 0; i < plan.children().size(); i++) asked.addAll(pending((LogicalPlan) plan.children().apply(i)));
            if (!(plan instanceof Filter)) return asked;
            Filter filter = (Filter) plan;
            boolean toldToScan = aboveScan(filter.child());
            if (toldToScan) addKeyFilters(filter.condition(), asked);
            if (!asked.isEmpty() && canFail(filter.condition(), toldToScan)) hiding.addAll(asked);
            return asked;
        }

        private List beside(Join join) {
            List all = new ArrayList();
            for (int i = 0; i < 2; i++) {
                LogicalPlan side = (LogicalPlan) join.children().apply(i);
                AttributeSet others = ((LogicalPlan) join.children().apply(1 - i)).outputSet();
                List asked = pending(side);
                boolean tested = !asked.isEmpty() && join.condition().isDefined();
                boolean keysFail = tested && canFail((Expression) join.condition().get(), side.outputSet(), true);
                boolean anyFails = tested && canFail((Expression) join.condition().get(), side.outputSet(), false);
                for (int k = 0; k < asked.size(); k++) {
                    DynamicPruningSubquery one = (DynamicPruningSubquery) asked.get(k);
                    boolean givesKeys = ((Expression) one.buildKeys().apply(0)).references().subsetOf(others);
                    if (givesKeys ? keysFail : anyFails) hiding.add(one);
                    if (!givesKeys) all.add(one);
                }
            }
            return all;
        }
    }

    /** Whether a filter's condition can fail; "subqueriesOnly": in a conjunct that has a subquery. */
    private static boolean canFail(Expression condition, boolean subqueriesOnly) {
        if (condition instanceof And) return canFail(((And) condition).left(), subqueriesOnly) || canFail(((And) condition).right(), subqueriesOnly);
        if (subqueriesOnly && !SubqueryExpression.hasSubquery(condition)) return false;
        return canFail(condition);
    }

    /**
     * Whether a join's condition can fail for rows of a side, also for those without a match if "keysOnly".
     *
     * The sides of an equality are computed before the join looks for matches; for the other side's, no row of
     * this one is needed.
     */
    private static boolean canFail(Expression condition, AttributeSet side, boolean keysOnly) {
        if (condition instanceof And) return canFail(((And) condition).left(), side, keysOnly) || canFail(((And) condition).right(), side, keysOnly);
        String name = condition.getClass().getSimpleName();
        if (!name.equals("EqualTo") && !name.equals("EqualNullSafe")) return !keysOnly && canFail(condition);
        Expression left = (Expression) ((BinaryComparison) condition).left();
        Expression right = (Expression) ((BinaryComparison) condition).right();
        return (ofSide(left, side) && canFail(left)) || (ofSide(right, side) && canFail(right));
    }

    private static boolean ofSide(Expression operand, AttributeSet side) {
        return operand.references().isEmpty() || !operand.references().intersect(side).isEmpty();
    }

    private static boolean canFail(Expression expression) {
        String name = expression.getClass().getSimpleName();
        if (expression instanceof Cast) {
            if (!mayCast((Cast) expression)) return true;
        } else if (ARITHMETIC.contains(name)) {
            if (overflows(expression.dataType())) return true;
        } else if (!SAFE.contains(name) && !(expression instanceof BinaryComparison)) return true;
        for (int i = 0; i < expression.children().size(); i++) if (canFail((Expression) expression.children().apply(i))) return true;
        return false;
    }

    private static boolean mayCast(Cast cast) {
        return !cast.evalMode().toString().equals("ANSI") || Cast$.MODULE$.canUpCast(((Expression) cast.child()).dataType(), cast.dataType());
    }

    /** Whether sums and products of a type can overflow. A DECIMAL of less than 38 digits is wide enough for both. */
    private static boolean overflows(DataType type) {
        if (type instanceof DecimalType) return ((DecimalType) type).precision() == 38;
        return !type.typeName().equals("double") && !type.typeName().equals("float");
    }

    /** Whether a plan is projections and filters over a Tamis scan. */
    private static boolean aboveScan(LogicalPlan plan) {
        LogicalPlan below = plan;
        while (below instanceof Project || below instanceof Filter) below = (LogicalPlan) below.children().apply(0);
        return below instanceof DataSourceV2ScanRelation && Handler.keyOf(((DataSourceV2ScanRelation) below).scan()) != null;
    }

    private static void addKeyFilters(Expression condition, List out) {
        if (condition instanceof DynamicPruningSubquery) out.add(condition);
        for (int i = 0; i < condition.children().size(); i++) addKeyFilters((Expression) condition.children().apply(i), out);
    }
}
