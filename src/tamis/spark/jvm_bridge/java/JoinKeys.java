package tamis;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
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
    private static final Set NUMBERS = new HashSet(Arrays.asList(new String[] {"byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz"}));

    /**
     * Run-time predicates ("column IN (values)") on what Catalyst holds as whole numbers, NULLs left out: what compares with them is never true. How many other predicates there are, then
     * column, type and number of values of each, a NUL between them, their bytes counted by an int before them; then the values as longs, in order, each once. Little-endian. A predicate of more than "most"
     * values, or of anything but values of one type, counts among neither; one of no values has no type. All as Base64: Py4J takes each byte of an array by itself.
     */
    public String numbers(Predicate[] predicates, int most) {
        StringBuilder said = new StringBuilder();
        int others = 0;
        int count = 0;
        for (int i = 0; i < predicates.length; i++) if (type(predicates[i], most) != null) count += predicates[i].children().length;
        ByteBuffer values = ByteBuffer.allocate(8 * count).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < predicates.length; i++) {
            if (nothing(predicates[i])) said.append('\u0000').append(((NamedReference) predicates[i].children()[0]).fieldNames()[0]).append("\u0000\u00000");
            DataType type = type(predicates[i], most);
            if (type == null) continue;
            if (!NUMBERS.contains(type.typeName())) {
                others++;
                continue;
            }
            Expression[] inside = predicates[i].children();
            long[] own = new long[inside.length - 1];
            int found = 0;
            for (int v = 1; v < inside.length; v++) {
                Number value = (Number) ((LiteralValue) inside[v]).value();
                if (value != null) own[found++] = value.longValue();
            }
            Arrays.sort(own, 0, found);
            int before = values.position();
            for (int v = 0; v < found; v++) if (v == 0 || own[v] != own[v - 1]) values.putLong(own[v]);
            said.append('\u0000').append(((NamedReference) inside[0]).fieldNames()[0]).append('\u0000').append(type.typeName());
            said.append('\u0000').append((values.position() - before) / 8);
        }
        byte[] header = (others + said.toString()).getBytes(StandardCharsets.UTF_8);
        values.flip();
        ByteBuffer all = ByteBuffer.allocate(4 + header.length + values.limit()).order(ByteOrder.LITTLE_ENDIAN);
        all.putInt(header.length);
        all.put(header);
        all.put(values);
        return new String(Base64.getEncoder().encode(all.array()), StandardCharsets.ISO_8859_1);
    }

    /** The others as Catalyst expressions, NULLs left out. */
    public Seq expressions(Predicate[] predicates, int most) {
        List out = new ArrayList();
        for (int i = 0; i < predicates.length; i++) {
            DataType type = type(predicates[i], most);
            if (type == null || NUMBERS.contains(type.typeName())) continue;
            Expression[] inside = predicates[i].children();
            Set values = new HashSet();
            for (int v = 1; v < inside.length; v++) if (((LiteralValue) inside[v]).value() != null) values.add(((LiteralValue) inside[v]).value());
            out.add(new InSet(column(((NamedReference) inside[0]).fieldNames()[0], type), CollectionConverters.asScala(values).toSet()));
        }
        return CollectionConverters.asScala(out).toSeq();
    }

    /** Whether the predicate is that a column of the table is one of no values: the small side has no row. */
    private static boolean nothing(Predicate predicate) {
        Expression[] inside = predicate.children();
        return predicate.name().equals("IN") && inside.length == 1 && inside[0] instanceof NamedReference && ((NamedReference) inside[0]).fieldNames().length == 1;
    }

    /** The type of the values among which a column of the table must be; null for any other predicate, and where there are none, or too many. */
    private static DataType type(Predicate predicate, int most) {
        Expression[] inside = predicate.children();
        if (!predicate.name().equals("IN") || inside.length < 2 || inside.length > most + 1 || !(inside[0] instanceof NamedReference)) return null;
        if (((NamedReference) inside[0]).fieldNames().length != 1 || !(inside[1] instanceof LiteralValue)) return null;
        DataType type = ((LiteralValue) inside[1]).dataType();
        for (int v = 2; v < inside.length; v++) if (!(inside[v] instanceof LiteralValue) || !type.equals(((LiteralValue) inside[v]).dataType())) return null;
        return type;
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
