package tamis;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** What a join's small side tells the scan of the other one while the query runs. */
public final class JoinKeys {
    /**
     * Run-time predicates ("column IN (values)") as Catalyst expressions, NULLs left out: what compares with them is never true. Anything else is left
     * out, and so is a predicate of more than "most" values.
     */
    public Seq expressions(Predicate[] predicates, int most) {
        List out = new ArrayList();
        for (int i = 0; i < predicates.length; i++) {
            Expression[] inside = predicates[i].children();
            if (!predicates[i].name().equals("IN") || inside.length == 0 || inside.length > most + 1 || !(inside[0] instanceof NamedReference)) continue;
            String[] path = ((NamedReference) inside[0]).fieldNames();
            Set values = new HashSet();
            DataType type = null;
            boolean plain = path.length == 1;
            for (int v = 1; v < inside.length && plain; v++) {
                plain = inside[v] instanceof LiteralValue && (type == null || type.equals(((LiteralValue) inside[v]).dataType()));
                if (!plain) continue;
                type = ((LiteralValue) inside[v]).dataType();
                if (((LiteralValue) inside[v]).value() != null) values.add(((LiteralValue) inside[v]).value());
            }
            if (!plain) continue;
            out.add(new InSet(column(path[0], type == null ? org.apache.spark.sql.types.NullType$.MODULE$ : type), CollectionConverters.asScala(values).toSet()));
        }
        return CollectionConverters.asScala(out).toSeq();
    }

    /** References to columns; their names with NUL characters between. */
    public NamedReference[] columns(String names) {
        String[] each = names.split("\u0000", -1);
        NamedReference[] out = new NamedReference[each.length];
        for (int i = 0; i < each.length; i++) out[i] = FieldReference.column(each[i]);
        return out;
    }

    private static AttributeReference column(String name, DataType type) {
        Seq unqualified = CollectionConverters.asScala(new ArrayList()).toSeq();
        return new AttributeReference(name, type, true, Metadata$.MODULE$.empty(), NamedExpression$.MODULE$.newExprId(), unqualified);
    }
}
