package tamis;

import java.util.function.BiFunction;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import scala.Function1;

/**
 * Removes key filters (DynamicPruningSubquery) of Tamis scans, also those that Spark's own rule adds.
 *
 * Key filters are optional: the join tests the rows in any case. Used by JoinPlanning.
 */
public final class KeyFilters {
    /**
     * Returns a function of a plan and a Predicate: the plan without the key filters for which the predicate is true.
     *
     * That includes copies in the subqueries of other key filters, in which Spark leaves key filters above joins.
     */
    public BiFunction removal() { return new Removal(); }

    /**
     * Returns a function of a plan: the plan without the key filters in the bodies of recursions.
     *
     * Spark analyzes and plans the body of a recursion anew for each step. A key filter that was added before,
     * whose other side reads the rows of the step, can be unresolved there. Planning the step adds the filters again.
     */
    public UnaryOperator outsideRecursions() { return new OutsideRecursions(); }

    private static final class Removal implements BiFunction {
        public Object apply(Object plan, Object removed) {
            return ((LogicalPlan) plan).transformDownWithSubqueries(new EachFilter((Predicate) removed));
        }
    }

    private static final class OutsideRecursions implements UnaryOperator {
        public Object apply(Object plan) {
            return recursive((LogicalPlan) plan) ? ((LogicalPlan) plan).transformDownWithSubqueries(new EachRecursion()) : plan;
        }

        /** Whether the plan holds a recursion, also in a subquery. */
        private static boolean recursive(LogicalPlan plan) {
            if (plan.nodeName().equals("UnionLoop")) return true;
            for (int i = 0; i < plan.children().size(); i++) if (recursive((LogicalPlan) plan.children().apply(i))) return true;
            for (int i = 0; i < plan.subqueries().size(); i++) if (recursive((LogicalPlan) plan.subqueries().apply(i))) return true;
            return false;
        }
    }

    private static final class EachRecursion extends scala.runtime.AbstractPartialFunction {
        public boolean isDefinedAt(Object node) { return ((LogicalPlan) node).nodeName().equals("UnionLoop"); }

        public Object applyOrElse(Object node, Function1 otherwise) {
            return isDefinedAt(node) ? ((LogicalPlan) node).transformDownWithSubqueries(new EachFilter(null)) : otherwise.apply(node);
        }
    }

    private static final class EachFilter extends scala.runtime.AbstractPartialFunction {
        private final Predicate removed;

        /** "removed" tells which key filters to remove; null removes all that lie right above Tamis scans. */
        EachFilter(Predicate removed) { this.removed = removed; }

        public boolean isDefinedAt(Object node) { return node instanceof Filter && (removed != null || ours(((Filter) node).child())); }

        public Object applyOrElse(Object node, Function1 otherwise) {
            if (!isDefinedAt(node)) return otherwise.apply(node);
            Filter filter = (Filter) node;
            Expression rest = rest(filter.condition());
            if (rest == filter.condition()) return node;
            if (rest != null) return new Filter(rest, filter.child());
            return isDefinedAt(filter.child()) ? applyOrElse(filter.child(), otherwise) : filter.child();
        }

        /** Whether a plan is projections and filters over a Tamis scan. */
        private static boolean ours(LogicalPlan plan) {
            LogicalPlan below = plan;
            while (below instanceof Project || below instanceof Filter) below = (LogicalPlan) below.children().apply(0);
            return below instanceof DataSourceV2ScanRelation && Handler.keyOf(((DataSourceV2ScanRelation) below).scan()) != null;
        }

        /** Returns the condition without the removed key filters, or null if nothing else is left. */
        private Expression rest(Expression condition) {
            if (condition instanceof DynamicPruningSubquery) return removed == null || removed.test(condition) ? null : condition;
            if (!(condition instanceof And)) return condition;
            And both = (And) condition;
            Expression left = rest(both.left());
            Expression right = rest(both.right());
            if (left == both.left() && right == both.right()) return condition;
            if (left == null) return right;
            return right == null ? left : new And(left, right);
        }
    }
}
