package tamis;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy;
import org.apache.spark.sql.execution.dynamicpruning.PartitionPruning$;
import org.apache.spark.sql.internal.SQLConf;
import scala.PartialFunction;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Passes join keys to Tamis scans in more joins than Spark's own dynamic partition pruning does.
 *
 * MoreKeys, an optimizer rule, takes equi-joins with a broadcast side and puts a DynamicPruningSubquery
 * filter above the scan (DataSourceV2ScanRelation) of the other side. Lazily, a planning strategy, takes
 * projections and filters over such a scan and plans them over the runtime-filtered scan of the same rows, where
 * few keys come. Installed by spark/scan/join_keys.py (plan_with_keys).
 */
public final class JoinPlanning {
    private static final PartitionPruning$ SPARK = PartitionPruning$.MODULE$;

    /**
     * Returns the rule. "selective" is called with a scan's key and "column NUL other scan's key NUL other
     * column"; it answers "true" if all the values that the other scan has in its column are likely to prune
     * this scan.
     */
    public Rule rule(BiFunction selective) { return new MoreKeys(selective); }

    /**
     * Returns the strategy. "filteredScans" is called with a scan's key and "keys column"; it answers the runtime-filtered scan
     * or null.
     */
    public SparkStrategy strategy(BiFunction filteredScans) { return new Lazily(filteredScans); }

    /**
     * Requests the join keys of a side that is broadcast anyway; Spark's own rule requires a selective
     * predicate on it. Such keys are cheap: they are read from the broadcast, and are dropped if the plan
     * ends up without one. The filter is pushed only through operators that treat each row by itself, and
     * through joins that keep it valid. Inside recursions, no key filter remains.
     */
    public static final class MoreKeys extends Rule {
        private final BiFunction selective;

        MoreKeys(BiFunction selective) { this.selective = selective; }

        public TreeNode apply(TreeNode plan) {
            SQLConf conf = conf();
            boolean off = !conf.dynamicPartitionPruningEnabled() || !conf.exchangeReuseEnabled();
            off = off || (plan instanceof Subquery && ((Subquery) plan).correlated());
            TreeNode more = off ? plan : plan.transformUp(new EachJoin(conf, selective));
            return recursive((LogicalPlan) more) ? ((LogicalPlan) more).transformDownWithSubqueries(new EachRecursion()) : more;
        }

        /** Whether the plan holds a recursion, also in a subquery. */
        private static boolean recursive(LogicalPlan plan) {
            if (plan.nodeName().equals("UnionLoop")) return true;
            for (int i = 0; i < plan.children().size(); i++) if (recursive((LogicalPlan) plan.children().apply(i))) return true;
            for (int i = 0; i < plan.subqueries().size(); i++) if (recursive((LogicalPlan) plan.subqueries().apply(i))) return true;
            return false;
        }
    }

    /**
     * Takes the key filters of Tamis scans out of recursions, also those that Spark's own rule adds.
     *
     * Spark analyzes and plans the body of a recursion anew for each step. A key filter that was added before,
     * whose other side reads the rows of the step, can be unresolved there. Planning the step adds the filters again.
     */
    private static final class EachRecursion extends scala.runtime.AbstractPartialFunction {
        public boolean isDefinedAt(Object node) { return ((LogicalPlan) node).nodeName().equals("UnionLoop"); }

        public Object applyOrElse(Object node, Function1 otherwise) {
            return isDefinedAt(node) ? ((LogicalPlan) node).transformDownWithSubqueries(new EachFilter()) : otherwise.apply(node);
        }
    }

    private static final class EachFilter extends scala.runtime.AbstractPartialFunction {
        public boolean isDefinedAt(Object node) { return node instanceof Filter && ours(((Filter) node).child()); }

        public Object applyOrElse(Object node, Function1 otherwise) {
            if (!isDefinedAt(node)) return otherwise.apply(node);
            Filter filter = (Filter) node;
            Expression rest = rest(filter.condition());
            if (rest == filter.condition()) return node;
            return rest == null ? filter.child() : new Filter(rest, filter.child());
        }

        /** Whether a plan is projections and filters over a Tamis scan. */
        private static boolean ours(LogicalPlan plan) {
            LogicalPlan below = plan;
            while (below instanceof Project || below instanceof Filter) below = (LogicalPlan) below.children().apply(0);
            return below instanceof DataSourceV2ScanRelation && Handler.keyOf(((DataSourceV2ScanRelation) below).scan()) != null;
        }

        /** Returns the condition without its key filters, or null if nothing else is left. */
        private static Expression rest(Expression condition) {
            if (condition instanceof DynamicPruningSubquery) return null;
            if (!(condition instanceof And)) return condition;
            And both = (And) condition;
            Expression left = rest(both.left());
            Expression right = rest(both.right());
            if (left == both.left() && right == both.right()) return condition;
            if (left == null) return right;
            return right == null ? left : new And(left, right);
        }
    }

    private static final class EachJoin extends scala.runtime.AbstractPartialFunction {
        private final SQLConf conf;
        private final BiFunction selective;

        EachJoin(SQLConf conf, BiFunction selective) {
            this.conf = conf;
            this.selective = selective;
        }

        public boolean isDefinedAt(Object node) { return node instanceof Join; }

        public Object applyOrElse(Object node, Function1 otherwise) {
            if (!(node instanceof Join)) return otherwise.apply(node);
            try {
                return more((Join) node);
            } catch (RuntimeException strangePlan) {
                return node; // keys are optional: a plan must not fail over them
            }
        }

        private LogicalPlan more(Join join) {
            scala.Option found = ExtractEquiJoinKeys$.MODULE$.unapply(join);
            if (found.isEmpty()) return join;
            Seq lefts = (Seq) ((scala.Product) found.get()).productElement(1);
            Seq rights = (Seq) ((scala.Product) found.get()).productElement(2);
            LogicalPlan left = join.left();
            LogicalPlan right = join.right();
            if (SPARK.canPruneLeft(join.joinType()) && small(right, SPARK.hintToBroadcastRight(join.hint()), SPARK.hintToNotBroadcastRight(join.hint()))) {
                for (int i = 0; i < lefts.size(); i++) left = pruned(left, lefts.apply(i), join.right(), rights, i);
            } else if (SPARK.canPruneRight(join.joinType()) && small(left, SPARK.hintToBroadcastLeft(join.hint()), SPARK.hintToNotBroadcastLeft(join.hint()))) {
                for (int i = 0; i < rights.size(); i++) right = pruned(right, rights.apply(i), join.left(), lefts, i);
            }
            return left == join.left() && right == join.right() ? join : with(join, left, right);
        }

        private boolean small(LogicalPlan side, boolean asked, boolean refused) {
            return !refused && (asked || SPARK.canBroadcastBySize(side, conf)) && !side.isStreaming() && side.deterministic();
        }

        private LogicalPlan pruned(LogicalPlan plan, Object key, LogicalPlan other, Seq keys, int at) {
            LogicalPlan found = key instanceof Attribute ? below(plan, (Attribute) key, other, keys, at) : null;
            return found == null ? plan : found;
        }

        /**
         * Returns the plan with a key filter right above the scan that outputs the attribute, or null if none
         * is added.
         */
        private LogicalPlan below(LogicalPlan plan, Attribute key, LogicalPlan other, Seq keys, int at) {
            if (plan instanceof DataSourceV2ScanRelation) {
                String ours = Handler.keyOf(((DataSourceV2ScanRelation) plan).scan());
                if (ours == null || !SPARK.getFilterableTableScan(key, plan).isDefined()) return null;
                String whole = keys.apply(at) instanceof Attribute ? whole(other, (Attribute) keys.apply(at), key) : null;
                if (whole != null && !"true".equals(selective.apply(ours, key.name() + '\u0000' + whole))) return null;
                return new Filter(asking(key, other, keys, at), plan);
            }
            if (plan instanceof Filter) {
                Filter filter = (Filter) plan;
                if (!filter.condition().deterministic() || asks(filter.condition(), key, (Expression) keys.apply(at))) return null;
                return above(plan, below(filter.child(), key, other, keys, at));
            }
            if (plan instanceof Project) {
                Attribute inside = inside((Project) plan, key);
                return inside == null ? null : above(plan, below((LogicalPlan) plan.children().apply(0), inside, other, keys, at));
            }
            if (plan instanceof Join) {
                Join join = (Join) plan;
                String type = join.joinType().getClass().getSimpleName();
                if (join.left().outputSet().contains(key) && !type.equals("RightOuter$") && !type.equals("FullOuter$") && !type.equals("LeftSingle$")) {
                    LogicalPlan left = below(join.left(), key, other, keys, at);
                    return left == null ? null : with(join, left, join.right());
                }
                if (join.right().outputSet().contains(key) && (type.equals("Inner$") || type.equals("RightOuter$"))) {
                    LogicalPlan right = below(join.right(), key, other, keys, at);
                    return right == null ? null : with(join, join.left(), right);
                }
            }
            return null;
        }

        /**
         * Returns "scan's key NUL column" if the side outputs all values of one column of a Tamis scan, else
         * null. A filter by the keys of our own side may stay below: it removes no value that matches.
         */
        private static String whole(LogicalPlan side, Attribute key, Attribute ours) {
            if (side instanceof DataSourceV2ScanRelation) {
                String scan = Handler.keyOf(((DataSourceV2ScanRelation) side).scan());
                return scan == null ? null : scan + '\u0000' + key.name();
            }
            if (side instanceof Filter && present(((Filter) side).condition(), key, ours)) return whole((LogicalPlan) side.children().apply(0), key, ours);
            Attribute inside = side instanceof Project ? inside((Project) side, key) : null;
            return inside == null ? null : whole((LogicalPlan) side.children().apply(0), inside, ours);
        }

        /** Whether a condition consists of IS NOT NULL tests and filters by the keys of our side. */
        private static boolean present(Expression condition, Attribute key, Attribute ours) {
            if (condition instanceof And) return present(((And) condition).left(), key, ours) && present(((And) condition).right(), key, ours);
            return condition instanceof IsNotNull || (condition instanceof DynamicPruningSubquery && asks(condition, key, ours));
        }

        private static LogicalPlan above(LogicalPlan plan, LogicalPlan child) {
            List one = new ArrayList();
            one.add(child);
            return child == null ? null : (LogicalPlan) plan.withNewChildren(seq(one));
        }

        private static LogicalPlan with(Join join, LogicalPlan left, LogicalPlan right) {
            List two = new ArrayList();
            two.add(left);
            two.add(right);
            return (LogicalPlan) join.withNewChildren(seq(two));
        }

        /**
         * Returns the input attribute behind an output of the projection; null if computed, or if any output
         * is nondeterministic.
         */
        private static Attribute inside(Project project, Attribute key) {
            Attribute found = null;
            Seq list = project.projectList();
            for (int i = 0; i < list.size(); i++) {
                Expression given = (Expression) list.apply(i);
                if (!given.deterministic()) return null;
                if (!((NamedExpression) given).exprId().equals(key.exprId())) continue;
                Object source = given instanceof Alias ? ((Alias) given).child() : given;
                if (source instanceof Attribute) found = (Attribute) source;
            }
            return found;
        }

        private static boolean asks(Expression condition, Attribute key, Expression given) {
            List asked = new ArrayList();
            questions(condition, asked);
            for (int i = 0; i < asked.size(); i++) {
                DynamicPruningSubquery one = (DynamicPruningSubquery) asked.get(i);
                if (!one.pruningKey().semanticEquals(key)) continue;
                for (int k = 0; k < one.buildKeys().size(); k++) if (((Expression) one.buildKeys().apply(k)).semanticEquals(given)) return true;
            }
            return false;
        }

        private static Expression asking(Attribute key, LogicalPlan other, Seq keys, int at) {
            List indices = new ArrayList();
            indices.add(Integer.valueOf(at));
            Constructor made = DynamicPruningSubquery.class.getConstructors()[0];  // later releases append optional parameters
            Object[] args = new Object[made.getParameterCount()];
            Object[] first = {key, other, keys, seq(indices), Boolean.TRUE, NamedExpression$.MODULE$.newExprId()};
            for (int i = 0; i < args.length; i++) args[i] = i < first.length ? first[i] : scala.Option.empty();
            try {
                return (Expression) made.newInstance(args);
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        }
    }

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
