package tamis;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Marks relations under a limit or an aggregate, and describes pushed orders and aggregates as text.
 *
 * Spark pushes limits and aggregates only into a scan that returns no filter from pushFilters, so the scan
 * must know of them when it gets the filters. An optimizer rule that runs before pushdown therefore sets an
 * option (MARK) of the DataSourceV2Relation. The rule takes GlobalLimit, LocalLimit or Aggregate over
 * filters, projections and sorts over a relation of ours. Only relations marked AGGREGATE accept aggregates:
 * Spark translates every aggregate above a source that accepts them and fails with an internal error on some
 * (V2ExpressionBuilder asserts that a condition is a predicate). For the same reason the rule hides
 * SupportsDeleteV2 from a DELETE whose condition Spark fails to translate.
 *
 * Another option (STEADY) marks relations whose rows have to be in the same partitions whichever columns are read.
 *
 * Enabled by spark/catalog/catalog.py and path_source.py; spark/scan/scan_builder.py reads the mark and the
 * texts.
 */
public final class Pushed implements Runnable {
    public static final String MARK = "tamis.internal.under";
    public static final String STEADY = "tamis.internal.steady";
    public static final String LIMIT = "limit";
    public static final String AGGREGATE = "aggregate";
    private static final java.util.Set known = java.util.Collections.newSetFromMap(new java.util.WeakHashMap());

    /** Adds the rule to the extensions of the active session, once. */
    public void run() {
        SparkSession session = (SparkSession) SparkSession.active();
        synchronized (known) {
            if (known.add(session.extensions())) session.extensions().injectOptimizerRule(new Make());
        }
    }

    private static final class Make extends scala.runtime.AbstractFunction1 {
        public Object apply(Object session) { return new Marking(); }
    }

    /**
     * Marks relations of ours under a limit (with filters, projections and sorts in between) or under an
     * aggregate of plain columns (with filters and projections in between).
     */
    public static final class Marking extends Rule {
        public TreeNode apply(TreeNode plan) { return (TreeNode) new Visit().apply(steady((LogicalPlan) plan, false)); }

        /**
         * Returns the plan with the mark STEADY on each relation of ours under a sample or a nondeterministic expression.
         *
         * What these give depends on the partition of a row, which must not depend on the columns that are selected: the
         * parts of a randomSplit are queries of their own.
         */
        private static LogicalPlan steady(LogicalPlan plan, boolean under) {
            if (plan instanceof DataSourceV2Relation) return under ? Visit.relation((DataSourceV2Relation) plan, STEADY, "true", plan) : plan;
            boolean below = under || plan instanceof Sample;
            Seq expressions = plan.expressions();
            for (int i = 0; i < expressions.size(); i++)
                below |= !((org.apache.spark.sql.catalyst.expressions.Expression) expressions.apply(i)).deterministic();
            List children = new ArrayList();
            boolean changed = false;
            for (int i = 0; i < plan.children().size(); i++) {
                LogicalPlan child = (LogicalPlan) plan.children().apply(i);
                LogicalPlan made = steady(child, below);
                changed |= made != child;
                children.add(made);
            }
            return changed ? (LogicalPlan) plan.withNewChildren(CollectionConverters.asScala(children).toSeq()) : plan;
        }
    }

    private static final class Visit extends scala.runtime.AbstractFunction1 {
        public Object apply(Object node) {
            LogicalPlan plan = (LogicalPlan) node;
            LogicalPlan marked = null;
            if (plan instanceof GlobalLimit || plan instanceof LocalLimit) {
                marked = marked(child(plan), LIMIT, false);
            } else if (plan instanceof Aggregate && answerable((Aggregate) plan)) {
                marked = marked(child(plan), AGGREGATE, false);
            }
            if (marked != null) return over(plan, marked);
            return plan instanceof WriteDelta ? translatable((WriteDelta) plan.mapChildren(this)) : plan.mapChildren(this);
        }

        /**
         * Returns a DELETE that Spark's OptimizeMetadataOnlyDeleteFromTable leaves alone where that rule would
         * fail to translate the condition: its table is replaced by one that cannot delete by filter.
         */
        private static LogicalPlan translatable(WriteDelta plan) {
            LogicalPlan original = (LogicalPlan) plan.originalTable();
            if (!(original instanceof DataSourceV2Relation)) return plan;
            Object table = original.productElement(0);
            if (Handler.keyOf(table) == null || !(table instanceof SupportsDeleteV2) || translates(plan.condition())) return plan;
            Object rowLevel = withElement(original, table, withoutMetadataDelete(table));
            return (LogicalPlan) withElement(plan, original, rowLevel);
        }

        private static boolean translates(org.apache.spark.sql.catalyst.expressions.Expression condition) {
            if (condition instanceof And) {
                return translates((org.apache.spark.sql.catalyst.expressions.Expression) condition.children().apply(0))
                    && translates((org.apache.spark.sql.catalyst.expressions.Expression) condition.children().apply(1));
            }
            try {
                DataSourceV2Strategy$.MODULE$.translateFilterV2(condition);
                return true;
            } catch (AssertionError error) {
                return false;
            } catch (RuntimeException error) {
                return false;
            }
        }

        private static Object withoutMetadataDelete(Object table) {
            List kept = new ArrayList();
            Class[] all = table.getClass().getInterfaces();
            for (int i = 0; i < all.length; i++) if (!SupportsDeleteV2.class.isAssignableFrom(all[i])) kept.add(all[i]);
            Class[] interfaces = (Class[]) kept.toArray(new Class[0]);
            return Proxy.newProxyInstance(table.getClass().getClassLoader(), interfaces, Proxy.getInvocationHandler(table));
        }

        /** Returns a copy of the plan with one of its constructor's arguments, found by identity, replaced. */
        private static TreeNode withElement(LogicalPlan plan, Object old, Object made) {
            Object[] values = new Object[plan.productArity()];
            for (int i = 0; i < values.length; i++) values[i] = plan.productElement(i) == old ? made : plan.productElement(i);
            return plan.makeCopy(values);
        }

        private static LogicalPlan child(LogicalPlan plan) { return (LogicalPlan) plan.children().apply(0); }

        /**
         * Whether a scan can answer the aggregate: COUNT, MIN and MAX of columns, grouped by columns. Under
         * any other aggregate the scan returns its filter to Spark.
         */
        private static boolean answerable(Aggregate plan) {
            Seq groups = plan.groupingExpressions();
            for (int i = 0; i < groups.size(); i++) if (!column(groups.apply(i), child(plan))) return false;
            return answerable(plan.aggregateExpressions(), child(plan));
        }

        private static boolean answerable(Seq trees, LogicalPlan below) {
            for (int i = 0; i < trees.size(); i++) {
                Object tree = trees.apply(i);
                if (tree instanceof AggregateExpression) {
                    AggregateExpression measure = (AggregateExpression) tree;
                    String function = measure.aggregateFunction().getClass().getSimpleName();
                    boolean known = function.equals("Count") || function.equals("Min") || function.equals("Max");
                    if (!known || measure.isDistinct() || measure.filter().isDefined()) return false;
                    Seq arguments = measure.aggregateFunction().children();
                    for (int k = 0; k < arguments.size(); k++)
                        if (!(arguments.apply(k) instanceof Literal || column(arguments.apply(k), below))) return false;
                } else if (!answerable(((TreeNode) tree).children(), below)) {
                    return false;
                }
            }
            return true;
        }

        /** Whether an expression over a plan is a column of the relation, possibly renamed. */
        private static boolean column(Object expression, LogicalPlan below) {
            if (!(expression instanceof Attribute)) return false;
            LogicalPlan plan = below;
            Attribute wanted = (Attribute) expression;
            while (plan instanceof Filter || plan instanceof Project) {
                if (plan instanceof Project) {
                    Seq list = ((Project) plan).projectList();
                    for (int i = 0; i < list.size(); i++) {
                        if (!(list.apply(i) instanceof Alias) || !((Alias) list.apply(i)).exprId().equals(wanted.exprId())) continue;
                        Object child = ((Alias) list.apply(i)).children().apply(0);
                        if (!(child instanceof Attribute)) return false;
                        wanted = (Attribute) child;
                        break;
                    }
                }
                plan = child(plan);
            }
            return true;
        }

        /**
         * Returns the plan with its relation marked; null for another shape, a limit without a filter, or a
         * marked relation.
         */
        private static LogicalPlan marked(LogicalPlan plan, String mark, boolean filtered) {
            boolean limit = mark.equals(LIMIT);
            if (plan instanceof DataSourceV2Relation) return filtered || !limit ? relation((DataSourceV2Relation) plan, MARK, mark, null) : null;
            boolean filter = plan instanceof Filter;
            boolean sort = limit && plan instanceof Sort && ordersColumns((Sort) plan);
            if (!(filter || plan instanceof Project || sort || (limit && plan instanceof LocalLimit))) return null;
            LogicalPlan below = marked(child(plan), mark, filtered || filter);
            return below == null ? null : over(plan, below);
        }

        /** Whether a scan can take the order: Spark translates any other, and fails on some as it does for aggregates. */
        private static boolean ordersColumns(Sort plan) {
            for (int i = 0; i < plan.order().size(); i++) {
                Seq parts = ((TreeNode) plan.order().apply(i)).children();
                if (!column(parts.apply(0), child(plan))) return false;
            }
            return true;
        }

        /** Returns the relation with an option set; "otherwise" if it is not ours, or has the option. */
        static LogicalPlan relation(DataSourceV2Relation relation, String option, String value, LogicalPlan otherwise) {
            if (Handler.keyOf(relation.productElement(0)) == null || relation.options().containsKey(option)) return otherwise;
            Map options = new HashMap(relation.options().asCaseSensitiveMap());
            options.put(option, value);
            Object[] values = new Object[relation.productArity()];
            for (int i = 0; i < values.length; i++) {
                values[i] = relation.productElement(i);
                if (values[i] instanceof CaseInsensitiveStringMap) values[i] = new CaseInsensitiveStringMap(options);
            }
            return (LogicalPlan) relation.makeCopy(values);
        }

        private static LogicalPlan over(LogicalPlan plan, LogicalPlan child) {
            List one = new ArrayList();
            one.add(child);
            return (LogicalPlan) plan.withNewChildren(CollectionConverters.asScala(one).toSeq());
        }
    }

    /**
     * Returns column, direction and null ordering of each sort order, each after a NUL; null if one is not a
     * plain column.
     */
    public String orders(SortOrder[] orders) {
        StringBuilder out = new StringBuilder();
        for (int i = 0; i < orders.length; i++) {
            String name = name(orders[i].expression());
            if (name == null) return null;
            out.append('\u0000').append(name).append('\u0000').append(orders[i].direction().name()).append('\u0000').append(orders[i].nullOrdering().name());
        }
        return out.toString();
    }

    /**
     * Returns the number of grouping columns, their names, then function and column ("" for COUNT(*)) of each
     * aggregate, each after a NUL. Null if anything else is among them.
     */
    public String aggregation(Aggregation asked) {
        Expression[] groups = asked.groupByExpressions();
        AggregateFunc[] measures = asked.aggregateExpressions();
        StringBuilder out = new StringBuilder().append('\u0000').append(groups.length);
        for (int i = 0; i < groups.length; i++) {
            String name = name(groups[i]);
            if (name == null) return null;
            out.append('\u0000').append(name);
        }
        for (int i = 0; i < measures.length; i++) {
            String function = null;
            String name = null;
            if (measures[i] instanceof CountStar) {
                function = "count";
                name = "";
            } else if (measures[i] instanceof Count && !((Count) measures[i]).isDistinct()) {
                function = "count";
                name = name(((Count) measures[i]).column());
            } else if (measures[i] instanceof Min) {
                function = "min";
                name = name(((Min) measures[i]).column());
            } else if (measures[i] instanceof Max) {
                function = "max";
                name = name(((Max) measures[i]).column());
            }
            if (name == null) return null;
            out.append('\u0000').append(function).append('\u0000').append(name);
        }
        return out.toString();
    }

    private static String name(Expression expression) {
        if (!(expression instanceof NamedReference)) return null;
        String[] path = ((NamedReference) expression).fieldNames();
        return path.length == 1 ? path[0] : null;
    }
}
