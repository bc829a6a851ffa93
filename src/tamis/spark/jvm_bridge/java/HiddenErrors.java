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
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.NumericType;

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

    /** What cannot fail if its operands cannot, but for times at the ends of 64 bits. Whatever is not here can. */
    private static final Set SAFE = set(
        "AttributeReference Literal And Or Not IsNull IsNotNull IsNaN In InSet Coalesce If CaseWhen Greatest Least ScalarSubquery DynamicPruningSubquery "
        + "KnownFloatingPointNormalized NormalizeNaNAndZero CreateNamedStruct GetStructField Murmur3Hash XxHash64 Md5 Crc32 "
        + "StartsWith EndsWith Contains Upper Lower InitCap Substring StringTrim StringTrimLeft StringTrimRight StringReplace StringInstr StringLPad StringRPad Length Concat ConcatWs "
        + "Year Quarter Month DayOfMonth DayOfYear DayOfWeek WeekDay WeekOfYear YearOfWeek Hour Minute Second LastDay TruncDate TruncTimestamp DateDiff DateAdd DateSub "
        + "Sqrt Pow Exp Log Log10 Log2 Signum");
    /** What cannot fail outside ANSI mode, if its operands cannot. */
    private static final Set OUTSIDE_ANSI = set("Add Subtract Multiply UnaryMinus Abs Divide Remainder Pmod Floor Ceil");
    /** What of that cannot fail in ANSI mode, either, if its type has no overflow. */
    private static final Set WITHOUT_OVERFLOW = set("Add Subtract Multiply UnaryMinus Abs");
    /** What cannot fail if its second operand is a constant: a pattern, which was tested before, or an interval. */
    private static final Set BY_CONSTANT = set("Like RLike DateFormatClass AddMonths DateAddYMInterval TimeAdd TimestampAddInterval TimestampAddYMInterval");
    /** Names of types that convert to each other without an error. */
    private static final Set TIMES = set("date timestamp timestamp_ntz");

    private static Set set(String names) { return new HashSet(Arrays.asList(names.split(" "))); }

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
        if (!cannotFailItself(expression, expression.getClass().getSimpleName())) return true;
        for (int i = 0; i < expression.children().size(); i++) if (canFail((Expression) expression.children().apply(i))) return true;
        return false;
    }

    private static boolean cannotFailItself(Expression expression, String name) {
        if (expression instanceof BinaryComparison || SAFE.contains(name)) return true;
        if (expression instanceof Cast) return !isAnsi(expression) || converts(((Expression) ((Cast) expression).child()).dataType(), expression.dataType());
        if (BY_CONSTANT.contains(name)) return expression.children().apply(1) instanceof Literal;
        if (!OUTSIDE_ANSI.contains(name) || !(expression.dataType() instanceof NumericType)) return false;
        boolean rest = expression.dataType() instanceof DecimalType && (name.equals("Remainder") || name.equals("Pmod")); // fails in every mode
        if ((!isAnsi(expression) && !rest) || (WITHOUT_OVERFLOW.contains(name) && !overflows(expression.dataType()))) return true;
        return name.equals("Divide") && !overflows(expression.dataType()) && isNotZero((Expression) expression.children().apply(1));
    }

    /** Whether a node is evaluated in ANSI mode, as far as its constructor says. */
    private static boolean isAnsi(Expression expression) {
        scala.Product given = (scala.Product) expression;
        for (int i = 0; i < given.productArity(); i++) {
            String name = given.productElementName(i);
            if (name.equals("evalMode") || name.equals("evalContext")) return given.productElement(i).toString().contains("ANSI");
            if (name.equals("failOnError") || name.equals("ansiEnabled")) return Boolean.TRUE.equals(given.productElement(i));
        }
        return true;
    }

    /** Whether each value of a type has a value of another in ANSI mode. */
    private static boolean converts(DataType from, DataType to) {
        boolean times = TIMES.contains(from.typeName()) && TIMES.contains(to.typeName());
        boolean floats = from instanceof NumericType && !overflows(to) && !(to instanceof DecimalType);
        return times || floats || Cast$.MODULE$.canUpCast(from, to);
    }

    private static boolean isNotZero(Expression divisor) {
        return divisor instanceof Literal && ((Literal) divisor).value() != null && !((Literal) divisor).value().toString().matches("-?[0.]+(E[+-]?[0-9]+)?");
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
