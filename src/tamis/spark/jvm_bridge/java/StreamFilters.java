package tamis;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.optimizer.ConstantFolding$;
import org.apache.spark.sql.catalyst.planning.PhysicalOperation$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Passes the filters above a streaming relation, and the columns that are needed of it, to Tamis.
 *
 * Spark pushes nothing into streaming relations. A planning strategy therefore takes projections and filters
 * over a StreamingDataSourceV2ScanRelation of ours, asks Python for the stream of this one micro-batch, and has
 * Spark plan them over it. Spark plans each micro-batch anew, when current_timestamp() is the batch's constant
 * already. The filters stay in Spark's plan, and so does the relation if Python gives no stream.
 *
 * Installed by spark/streaming/micro_batch.py. spark/streaming/query_filters.py asks for the filters of the whole
 * query, before a micro-batch is planned.
 */
public final class StreamFilters {
    /** What Python is asked: the end offset of the batch, the conjuncts, and the names of the columns needed. */
    public static final class Asked {
        private final String end;
        private final Seq filters;
        private final List columns;

        Asked(String end, Seq filters, List columns) {
            this.end = end;
            this.filters = filters;
            this.columns = columns;
        }

        public String end() { return end; }

        public Seq filters() { return filters; }

        public List columns() { return columns; }
    }

    /**
     * Returns the strategy. "batches" is called with a stream's key and an Asked. It answers null, or a list: the
     * stream of the micro-batch, which is its scan as well, and the number of the set of columns that it reads.
     */
    public SparkStrategy strategy(BiFunction batches) { return new Strategy(batches); }

    /**
     * Returns the filters over each relation of the stream that is left in a query's plan when it is optimised
     * now, as Seqs. Spark does the same with the plan of each micro-batch.
     */
    public List now(LogicalPlan plan, String key) {
        SparkSession session = (SparkSession) SparkSession.active();
        List found = new ArrayList();
        collect((LogicalPlan) session.sessionState().optimizer().execute((LogicalPlan) plan.children().head()), key, found);
        return found;
    }

    private static void collect(LogicalPlan plan, String key, List found) {
        scala.Option matched = PhysicalOperation$.MODULE$.unapply(plan);
        scala.Tuple3 parts = matched.isEmpty() ? null : (scala.Tuple3) matched.get();
        if (parts != null && parts._3() instanceof StreamingDataSourceV2ScanRelation) {
            StreamingDataSourceV2ScanRelation relation = (StreamingDataSourceV2ScanRelation) parts._3();
            if (key.equals(Handler.keyOf(relation.stream()))) found.add(conjuncts((Seq) parts._2(), relation));
            return;
        }
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) collect((LogicalPlan) children.next(), key, found);
    }

    /** The filters over a relation, in terms of its columns, with constants folded. */
    private static Seq conjuncts(Seq conditions, StreamingDataSourceV2ScanRelation relation) {
        Seq filters = DataSourceStrategy$.MODULE$.normalizeExprs(conditions, (Seq) relation.output());
        List folded = new ArrayList();
        for (int i = 0; i < filters.size(); i++) folded.add(folded((Expression) filters.apply(i), relation));
        return CollectionConverters.asScala(folded).toSeq();
    }

    /** Computes what is constant only since the batch's instant is: Spark's optimizer ran before that. */
    private static Expression folded(Expression condition, LogicalPlan relation) {
        return ((Filter) ConstantFolding$.MODULE$.apply((LogicalPlan) new Filter(condition, relation))).condition();
    }

    /** Plans projections and filters over our streaming relations. All other plans are left to Spark. */
    public static final class Strategy extends SparkStrategy {
        private final BiFunction batches;

        Strategy(BiFunction batches) { this.batches = batches; }

        public Seq apply(LogicalPlan plan) {
            LogicalPlan made = null;
            try {
                made = over(plan);
            } catch (Handler.Failure refused) {
                if (refused.getCondition().equals("UNSUPPORTED_READ")) throw refused;
            } catch (RuntimeException strangePlan) {
                made = null; // skipping is optional: a plan must not fail over it
            }
            return made == null ? seq(new ArrayList()) : new DataSourceV2Strategy((SparkSession) SparkSession.active()).apply(made);
        }

        private LogicalPlan over(LogicalPlan plan) {
            if (!(plan instanceof Project || plan instanceof Filter || plan instanceof StreamingDataSourceV2ScanRelation)) return null;
            scala.Option found = PhysicalOperation$.MODULE$.unapply(plan);
            if (found.isEmpty()) return null;
            scala.Tuple3 parts = (scala.Tuple3) found.get();
            if (!(parts._3() instanceof StreamingDataSourceV2ScanRelation)) return null;
            StreamingDataSourceV2ScanRelation relation = (StreamingDataSourceV2ScanRelation) parts._3();
            String key = Handler.keyOf(relation.stream());
            if (key == null || relation.startOffset().isEmpty() || relation.endOffset().isEmpty()) return null;
            Seq conjuncts = conjuncts((Seq) parts._2(), relation);
            List columns = needed((Seq) parts._1(), (Seq) parts._2(), relation.output());
            List names = new ArrayList();
            for (int i = 0; i < columns.size(); i++) names.add(((Attribute) columns.get(i)).name());
            String end = ((org.apache.spark.sql.connector.read.streaming.Offset) relation.endOffset().get()).json();
            List answer = (List) batches.apply(key, new Asked(end, conjuncts, names));
            if (answer == null) return null;
            int number = ((Number) answer.get(1)).intValue();
            return replaced((Seq) parts._1(), apart((Seq) parts._2(), number), relation, answer.get(0), seq(columns));
        }

        /**
         * The filters, with "n = n" for all but the first set of columns of a micro-batch. All scans of a stream
         * are equal, because Spark counts the rows of a source by equality, and Spark knows their columns by
         * position when it looks for a shuffle to use again: without it, one branch would get the rows of another.
         */
        private static Seq apart(Seq filters, int number) {
            if (number == 0) return filters;
            List all = new ArrayList(CollectionConverters.asJava(filters));
            Literal constant = Literal$.MODULE$.apply(Integer.valueOf(number));
            all.add(new EqualTo(constant, constant));
            return seq(all);
        }

        private static List needed(Seq project, Seq filters, Seq output) {
            List out = new ArrayList();
            for (int i = 0; i < output.size(); i++) {
                Attribute column = (Attribute) output.apply(i);
                if (uses(project, column) || uses(filters, column)) out.add(column);
            }
            return out;
        }

        private static boolean uses(Seq expressions, Attribute column) {
            for (int i = 0; i < expressions.size(); i++) {
                AttributeSet references = ((Expression) expressions.apply(i)).references();
                if (references.contains(column)) return true;
            }
            return false;
        }

        /**
         * Returns the projection and the filters over the relation with the batch's stream and scan. They are made
         * anew: the streams are equal, and Spark keeps a plan whose new children equal the old ones.
         */
        private static LogicalPlan replaced(Seq project, Seq filters, LogicalPlan relation, Object stream, Seq output) {
            Object[] values = new Object[relation.productArity()];
            for (int i = 0; i < values.length; i++) {
                values[i] = relation.productElement(i);
                if (values[i] instanceof MicroBatchStream || values[i] instanceof Scan) values[i] = stream;
                else if (values[i] instanceof Seq) values[i] = output;
            }
            LogicalPlan made = (LogicalPlan) relation.makeCopy(values);
            Expression condition = null;
            for (int i = 0; i < filters.size(); i++) {
                Expression next = (Expression) filters.apply(i);
                condition = condition == null ? next : new And(condition, next);
            }
            return new Project(project, condition == null ? made : new Filter(condition, made));
        }

        private static Seq seq(List items) { return CollectionConverters.asScala(items).toSeq(); }
    }
}
