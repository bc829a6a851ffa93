package tamis;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionOperation;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.dynamicpruning.PartitionPruning$;
import org.apache.spark.sql.internal.SQLConf;
import scala.Function1;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Passes join keys to Tamis scans in more joins than Spark's own dynamic partition pruning does.
 *
 * MoreKeys, an optimizer rule, takes equi-joins with a broadcast side and puts a DynamicPruningSubquery
 * filter above the scan (DataSourceV2ScanRelation) of the other side, and takes away such filters whose keys
 * come too late, or could hide an error (HiddenErrors). Installed by spark/scan/join_keys.py (install_planning).
 */
public final class JoinPlanning {
    private static final PartitionPruning$ SPARK = PartitionPruning$.MODULE$;

    /**
     * Returns the rule. "selective" is called with a scan's key and "column NUL other scan's key NUL other
     * column"; it answers "true" if all the values that the other scan has in its column are likely to prune
     * this scan. Called with a column alone, it answers "true" if keys of the column can skip parts of the scan,
     * or rows while it is read. "removal" and "outsideRecursions" are those of KeyFilters,
     * "hidingErrors" is the search of HiddenErrors.
     */
    public Rule rule(BiFunction selective, BiFunction removal, UnaryOperator outsideRecursions, UnaryOperator hidingErrors) {
        return new MoreKeys(selective, removal, outsideRecursions, hidingErrors);
    }

    /**
     * Requests the join keys of a side that is broadcast anyway; Spark's own rule requires a selective
     * predicate on it. Such keys are cheap: they are read from the broadcast, and are dropped if the plan
     * ends up without one. The filter is pushed only through operators that treat each row by itself, and
     * through joins that keep it valid. Inside recursions, no key filter remains; nor does one whose keys come
     * too late, or that could hide an error, even if Spark's own rule added it.
     */
    public static final class MoreKeys extends Rule {
        private final BiFunction selective;
        private final BiFunction removal;
        private final UnaryOperator outsideRecursions;
        private final UnaryOperator hidingErrors;

        MoreKeys(BiFunction selective, BiFunction removal, UnaryOperator outsideRecursions, UnaryOperator hidingErrors) {
            this.selective = selective;
            this.removal = removal;
            this.outsideRecursions = outsideRecursions;
            this.hidingErrors = hidingErrors;
        }

        public TreeNode apply(TreeNode plan) {
            SQLConf conf = conf();
            boolean off = !conf.dynamicPartitionPruningEnabled() || !conf.exchangeReuseEnabled();
            off = off || (plan instanceof Subquery && ((Subquery) plan).correlated());
            TreeNode more = off ? plan : plan.transformUp(new EachJoin(conf, selective));
            return (TreeNode) outsideRecursions.apply(off ? more : withoutUnfitKeys((LogicalPlan) more, conf));
        }

        /** Returns the plan without the key filters that come too late to be of use, or could hide an error. */
        private LogicalPlan withoutUnfitKeys(LogicalPlan plan, SQLConf conf) {
            if (!plan.containsPattern(TreePattern.DYNAMIC_PRUNING_SUBQUERY())) return plan;
            try {
                Set unfit = new HashSet();
                addLate(plan, new ArrayList(), conf, unfit);
                for (Object one : (Set) hidingErrors.apply(plan)) {
                    if (((DynamicPruningSubquery) one).pruningKey() instanceof Attribute) unfit.add(Among.name((DynamicPruningSubquery) one));
                }
                return unfit.isEmpty() ? plan : (LogicalPlan) removal.apply(plan, new Among(unfit));
            } catch (RuntimeException strangePlan) {
                return plan; // keys are optional: a plan must not fail over them
            }
        }

        /**
         * Adds the key filters that come too late to choose a scan's reader.
         *
         * Adaptive execution plans a scan again, with the number of keys at hand, only if the join that gives them
         * is in the scan's own stage. Spark's reader can skip whole parts by keys for a stage that was planned before, no
         * more. Where they cannot do that either, the stage would wait for nothing, and no equal stage could be reused.
         * "broadcastSides" are the other sides of the joins between the plan and the end of its stage.
         */
        private void addLate(LogicalPlan plan, List broadcastSides, SQLConf conf, Set late) {
            List asked = new ArrayList();
            LogicalPlan scan = plan;
            for (; scan instanceof Project || scan instanceof Filter; scan = (LogicalPlan) scan.children().apply(0)) {
                if (scan instanceof Filter) questions(((Filter) scan).condition(), asked);
            }
            if (!asked.isEmpty() && scan instanceof DataSourceV2ScanRelation) {
                addLate(scan, asked, broadcastSides, late);
            } else {
                for (int i = 0; i < plan.children().size(); i++) addLate((LogicalPlan) plan.children().apply(i), inside(plan, i, broadcastSides, conf), conf, late);
            }
        }

        /**
         * Adds those of a scan's key filters that come too late: none if another comes in time, as it may let our reader in,
         * which uses them all.
         */
        private void addLate(LogicalPlan scan, List asked, List broadcastSides, Set late) {
            if (Handler.keyOf(((DataSourceV2ScanRelation) scan).scan()) == null) return;
            for (int i = 0; i < asked.size(); i++) if (suppliedBy((DynamicPruningSubquery) asked.get(i), broadcastSides)) return;
            for (int i = 0; i < asked.size(); i++) {
                DynamicPruningSubquery one = (DynamicPruningSubquery) asked.get(i);
                boolean plain = one.pruningKey() instanceof Attribute && scan.outputSet().contains((Attribute) one.pruningKey());
                if (plain && !prunes(scan, (Attribute) one.pruningKey(), selective)) late.add(Among.name(one));
            }
        }

        /** Whether one of the broadcast sides outputs the keys of a key filter. */
        private static boolean suppliedBy(DynamicPruningSubquery asked, List broadcastSides) {
            for (int i = 0; i < broadcastSides.size(); i++) if (((Expression) asked.buildKeys().apply(0)).references().subsetOf(((LogicalPlan) broadcastSides.get(i)).outputSet())) return true;
            return false;
        }

        /** Returns the broadcast sides that a child's stage joins: none from above an exchange. */
        private static List inside(LogicalPlan plan, int child, List broadcastSides, SQLConf conf) {
            List all = new ArrayList();
            if (!(plan instanceof Join)) return exchanges(plan) ? all : broadcastSides;
            if (!smallBeside((Join) plan, child == 0, conf)) return all;
            all.addAll(broadcastSides);
            all.add(plan.children().apply(1 - child));
            return all;
        }

        /** Whether Spark exchanges the rows of a plan's child. */
        private static boolean exchanges(LogicalPlan plan) {
            if (plan instanceof Sort) return ((Sort) plan).global();
            if (plan instanceof RepartitionOperation) return ((RepartitionOperation) plan).shuffle();
            return plan instanceof Aggregate || plan instanceof Window || plan instanceof GlobalLimit;
        }
    }

    /** Whether keys of the attribute can skip parts of the scan, or rows because our reader reads it. */
    private static boolean prunes(LogicalPlan scan, Attribute key, BiFunction selective) {
        return "true".equals(selective.apply(Handler.keyOf(((DataSourceV2ScanRelation) scan).scan()), key.name()));
    }

    /** Whether the left ("first") or the right side of a join has a small side beside it, which will be broadcast. */
    private static boolean smallBeside(Join join, boolean first, SQLConf conf) {
        LogicalPlan other = first ? join.right() : join.left();
        boolean asked = first ? SPARK.hintToBroadcastRight(join.hint()) : SPARK.hintToBroadcastLeft(join.hint());
        boolean refused = first ? SPARK.hintToNotBroadcastRight(join.hint()) : SPARK.hintToNotBroadcastLeft(join.hint());
        return !refused && (asked || SPARK.canBroadcastBySize(other, conf)) && !other.isStreaming() && other.deterministic();
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
            if (SPARK.canPruneLeft(join.joinType()) && smallBeside(join, true, conf)) {
                for (int i = 0; i < lefts.size(); i++) left = pruned(left, lefts.apply(i), join.right(), rights, i);
            } else if (SPARK.canPruneRight(join.joinType()) && smallBeside(join, false, conf)) {
                for (int i = 0; i < rights.size(); i++) right = pruned(right, rights.apply(i), join.left(), lefts, i);
            }
            return left == join.left() && right == join.right() ? join : with(join, left, right);
        }

        private LogicalPlan pruned(LogicalPlan plan, Object key, LogicalPlan other, Seq keys, int at) {
            LogicalPlan found = key instanceof Attribute ? below(plan, (Attribute) key, other, keys, at, true) : null;
            return found == null ? plan : found;
        }

        /**
         * Returns the plan with a key filter right above the scan that outputs the attribute, or null if none
         * is added. "sameStage": whether the join that gives the keys is in the stage of the plan.
         */
        private LogicalPlan below(LogicalPlan plan, Attribute key, LogicalPlan other, Seq keys, int at, boolean sameStage) {
            if (plan instanceof DataSourceV2ScanRelation) {
                String ours = Handler.keyOf(((DataSourceV2ScanRelation) plan).scan());
                if (ours == null || !SPARK.getFilterableTableScan(key, plan).isDefined()) return null;
                String whole = keys.apply(at) instanceof Attribute ? whole(other, (Attribute) keys.apply(at), key) : null;
                if (whole != null && !"true".equals(selective.apply(ours, key.name() + '\u0000' + whole))) return null;
                if (!sameStage && !prunes(plan, key, selective)) return null;
                return new Filter(asking(key, other, keys, at), plan);
            }
            if (plan instanceof Filter) {
                Filter filter = (Filter) plan;
                if (!filter.condition().deterministic() || asks(filter.condition(), key, (Expression) keys.apply(at))) return null;
                return above(plan, below(filter.child(), key, other, keys, at, sameStage));
            }
            if (plan instanceof Project) {
                Attribute inside = inside((Project) plan, key);
                return inside == null ? null : above(plan, below((LogicalPlan) plan.children().apply(0), inside, other, keys, at, sameStage));
            }
            if (plan instanceof Join) {
                Join join = (Join) plan;
                String type = join.joinType().getClass().getSimpleName();
                if (join.left().outputSet().contains(key) && !type.equals("RightOuter$") && !type.equals("FullOuter$") && !type.equals("LeftSingle$")) {
                    LogicalPlan left = below(join.left(), key, other, keys, at, sameStage && smallBeside(join, true, conf));
                    return left == null ? null : with(join, left, join.right());
                }
                if (join.right().outputSet().contains(key) && (type.equals("Inner$") || type.equals("RightOuter$"))) {
                    LogicalPlan right = below(join.right(), key, other, keys, at, sameStage && smallBeside(join, false, conf));
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

    /** Whether a key filter is one of some; its copies in other filters' subqueries are, too. */
    private static final class Among implements Predicate {
        private final Set names;

        Among(Set names) { this.names = names; }

        /** Names a key filter. Spark pushes one through a union to columns of each branch. */
        static String name(DynamicPruningSubquery filter) { return filter.exprId() + " " + ((Attribute) filter.pruningKey()).exprId(); }

        public boolean test(Object filter) {
            DynamicPruningSubquery asked = (DynamicPruningSubquery) filter;
            return asked.pruningKey() instanceof Attribute && names.contains(name(asked));
        }
    }

    private static void questions(Expression condition, List out) {
        if (condition instanceof DynamicPruningSubquery) out.add(condition);
        for (int i = 0; i < condition.children().size(); i++) questions((Expression) condition.children().apply(i), out);
    }

    private static Seq seq(List items) { return CollectionConverters.asScala(items).toSeq(); }
}
