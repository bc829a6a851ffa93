package tamis;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.CollectMetrics;
import org.apache.spark.sql.catalyst.plans.logical.Deduplicate;
import org.apache.spark.sql.catalyst.plans.logical.DeduplicateWithinWatermark;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.execution.datasources.v2.StreamingDataSourceV2ScanRelation;
import scala.collection.immutable.Seq;

/**
 * The columns of a stream that its query refers to as it was analyzed.
 *
 * Spark simplifies a query by the types and nullability of its columns: what is simplified away is not in the
 * plan of a micro-batch any more. Asked by spark/streaming/query_filters.py.
 */
public final class StreamColumns {
    /** Returns the names of the stream's columns that the plan refers to; null if the plan has no such stream. */
    public List referenced(LogicalPlan plan, String key) {
        List names = new ArrayList();
        return collect(plan, null, key, names) ? names : null;
    }

    /**
     * Adds the names of columns that a plan refers to, of whose output "above" is needed; null stands for all of it.
     * Returns whether the plan has the stream. Of what is not known here, all columns of the children are needed.
     */
    private static boolean collect(LogicalPlan plan, AttributeSet above, String key, List names) {
        if (plan instanceof StreamingDataSourceV2ScanRelation) {
            StreamingDataSourceV2ScanRelation relation = (StreamingDataSourceV2ScanRelation) plan;
            if (!key.equals(Handler.keyOf(relation.stream()))) return false;
            Seq output = (Seq) relation.output();
            for (int i = 0; i < output.size(); i++) {
                Attribute column = (Attribute) output.apply(i);
                if (above == null || above.contains(column)) names.add(column.name());
            }
            return true;
        }
        AttributeSet below = null;
        if (plan instanceof Project) below = referencesOfNeeded((Seq) ((Project) plan).projectList(), above);
        else if (plan instanceof Aggregate) below = plan.references();
        else if (passesColumns(plan) && above != null) below = union(above, plan.references());
        boolean found = false;
        scala.collection.Iterator children = plan.children().iterator();
        while (children.hasNext()) found |= collect((LogicalPlan) children.next(), below, key, names);
        scala.collection.Iterator inner = plan.subqueries().iterator();
        while (inner.hasNext()) found |= collect((LogicalPlan) inner.next(), null, key, names);
        return found;
    }

    /** Whether all that a node does with its children's columns, but for passing them on, is in its expressions. */
    private static boolean passesColumns(LogicalPlan plan) {
        return plan instanceof Filter || plan instanceof SubqueryAlias || plan instanceof EventTimeWatermark || plan instanceof Join
            || plan instanceof Deduplicate || plan instanceof DeduplicateWithinWatermark || plan instanceof Generate || plan instanceof Window
            || plan instanceof CollectMetrics || plan instanceof RepartitionByExpression || plan instanceof Repartition;
    }

    /** What the needed ones of a projection's columns refer to. */
    private static AttributeSet referencesOfNeeded(Seq projected, AttributeSet above) {
        AttributeSet all = empty();
        for (int i = 0; i < projected.size(); i++) {
            NamedExpression column = (NamedExpression) projected.apply(i);
            if (above == null || above.contains(column)) all = union(all, ((Expression) column).references());
        }
        return all;
    }

    private static AttributeSet empty() { return org.apache.spark.sql.catalyst.expressions.AttributeSet$.MODULE$.empty(); }

    private static AttributeSet union(AttributeSet one, AttributeSet other) { return one.$plus$plus(other); }
}
