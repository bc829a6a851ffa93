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
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Reads the run-time filter predicates that Spark passes to a scan.
 *
 * Takes the Predicate[] of SupportsRuntimeV2Filtering.filter; only "column IN (literals)" on a top-level
 * column is understood. Gives packed whole numbers, and Catalyst InSet expressions for all other types. Used
 * by spark/scan/join_keys.py.
 */
public final class JoinKeys {
    private static final Set NUMBERS = new HashSet(Arrays.asList(new String[] {"byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz"}));

    /**
     * Packs the predicates on types that Catalyst holds as whole numbers. NULL values are left out: a
     * comparison with NULL is never true.
     *
     * Layout, little-endian: an int with the header's length in bytes; the header, a NUL-separated text of
     * the number of other usable predicates (see expressions) and, for each packed predicate, column, type
     * and number of values; then all values as longs, sorted and distinct per predicate. A predicate without
     * values has the type "". A predicate with more than "most" values, or with values of mixed types, is
     * ignored. The whole is Base64 text, because Py4J transfers byte arrays one byte at a time.
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

    /** Returns the usable predicates on all other types as InSet expressions, without NULL values. */
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

    /** Whether the predicate is a top-level column IN (): the join's small side has no rows. */
    private static boolean nothing(Predicate predicate) {
        Expression[] inside = predicate.children();
        return predicate.name().equals("IN") && inside.length == 1 && inside[0] instanceof NamedReference && ((NamedReference) inside[0]).fieldNames().length == 1;
    }

    /**
     * Returns the type of the values of an IN on a top-level column; null for other predicates, no values, or
     * too many.
     */
    private static DataType type(Predicate predicate, int most) {
        Expression[] inside = predicate.children();
        if (!predicate.name().equals("IN") || inside.length < 2 || inside.length > most + 1 || !(inside[0] instanceof NamedReference)) return null;
        if (((NamedReference) inside[0]).fieldNames().length != 1 || !(inside[1] instanceof LiteralValue)) return null;
        DataType type = ((LiteralValue) inside[1]).dataType();
        for (int v = 2; v < inside.length; v++) if (!(inside[v] instanceof LiteralValue) || !type.equals(((LiteralValue) inside[v]).dataType())) return null;
        return type;
    }

    private static AttributeReference column(String name, DataType type) {
        Seq unqualified = CollectionConverters.asScala(new ArrayList()).toSeq();
        return new AttributeReference(name, type, true, Metadata$.MODULE$.empty(), NamedExpression$.MODULE$.newExprId(), unqualified);
    }
}
