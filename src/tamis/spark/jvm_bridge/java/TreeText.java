package tamis;

import java.time.Instant;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import java.util.zip.CRC32;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.ConvertTimezone;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JsonToStructs;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Lower;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.TimestampFormatterHelper;
import org.apache.spark.sql.catalyst.expressions.UTCTimestamp;
import org.apache.spark.sql.catalyst.expressions.Upper;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writes Catalyst expressions as one JSON text, so that Python reads a tree in one call.
 *
 * Takes a Scala Seq of Expression; gives {"trees": [nodes], "types": [types], "zones": {time zone: its rules}}. A node is {"c": class, "t":
 * index into "types", "k": [children], "p": {constructor arguments that are not expressions}}, and "session": {settings} if its evaluation reads
 * settings of the session; a literal has "v" instead of "k" and "p"; a constant struct is {"row": [values]}, a constant array {"items": [values]}. Unlike Spark's toJSON this includes evalMode, nested argument objects and the
 * values of an InSet. Classes outside the given set of names also carry "s", their SQL text, for people. Read
 * by spark/jvm_bridge/catalyst.py.
 */
public final class TreeText implements BiFunction {
    private static final int LONGEST_SQL = 2000;
    private static final String TIME_PARSER = "spark.sql.legacy.timeParserPolicy";
    private static final String[] NO_SETTING = {};
    private static final String[] OF_PATTERNS = {TIME_PARSER};
    private static final String[] OF_CASE = {"spark.sql.icu.caseMappings.enabled"};
    private static final String[] OF_JSON = {
        "spark.sql.columnNameOfCorruptRecord", "spark.sql.json.enablePartialResults", "spark.sql.json.enableExactStringParsing",
        "spark.sql.legacy.json.allowEmptyString.enabled", "spark.sql.legacy.json.enableDateTimeParsingFallback", TIME_PARSER};

    private static final long YEAR_2400 = 13569465600L;
    private static final long YEAR_2500 = 16725225600L;
    private static final ConcurrentHashMap RULES = new ConcurrentHashMap();

    private final StringBuilder out = new StringBuilder();
    private final LinkedHashMap types = new LinkedHashMap();
    private final LinkedHashSet zones = new LinkedHashSet();
    private final Set known;

    public TreeText() {
        this(new HashSet());
    }

    private TreeText(Set known) {
        this.known = known;
    }

    /**
     * Returns the JSON text of a Seq of expressions; known lists, comma-separated, the classes that need no
     * SQL text.
     */
    public String render(Object expressions, String known) {
        return new TreeText(new HashSet(Arrays.asList(known.split(",")))).write(expressions);
    }

    /** As render, for ScanBuilders, whose class loader does not know this class. */
    public Object apply(Object expressions, Object known) { return render(expressions, (String) known); }

    private String write(Object expressions) {
        out.append("{\"trees\":[");
        scala.collection.Iterator it = ((scala.collection.Iterable) expressions).iterator();
        for (int i = 0; it.hasNext(); i++) {
            if (i > 0) out.append(',');
            node((Expression) it.next());
        }
        out.append("],\"types\":[");
        Object[] names = types.keySet().toArray();
        for (int i = 0; i < names.length; i++) {
            if (i > 0) out.append(',');
            type((DataType) names[i]);
        }
        out.append("],\"zones\":{");
        Object[] used = zones.toArray();
        for (int i = 0; i < used.length; i++) {
            if (i > 0) out.append(',');
            quote((String) used[i]);
            out.append(':').append(rules((String) used[i]));
        }
        return out.append("}}").toString();
    }

    /**
     * Returns a checksum of a zone's offsets up to the year 2400, which tells whether Python has the same;
     * -1 for an unknown zone. See core/expr/time_zones.py.
     */
    private static long rules(String zone) {
        Long known = (Long) RULES.get(zone);
        if (known == null) {
            known = Long.valueOf(checksum(zone));
            RULES.put(zone, known);
        }
        return known.longValue();
    }

    private static long checksum(String zone) {
        byte[] bytes;
        try {
            bytes = table(zone, YEAR_2400).getBytes();
        } catch (Exception unknown) {
            return -1;
        }
        CRC32 sum = new CRC32();
        sum.update(bytes, 0, bytes.length);
        return sum.getValue();
    }

    /** Returns a zone's first offset, and each "instant:offset" to the year 2500, in seconds, between commas. */
    public String zoneTable(String zone) { return table(zone, YEAR_2500); }

    private static String table(String zone, long end) {
        ZoneRules rules = DateTimeUtils.getZoneId(zone).getRules();
        StringBuilder text = new StringBuilder();
        text.append(rules.getOffset(Instant.MIN).getTotalSeconds());
        ZoneOffsetTransition next = rules.nextTransition(Instant.MIN);
        while (next != null && next.toEpochSecond() < end) {
            text.append(',').append(next.toEpochSecond()).append(':').append(next.getOffsetAfter().getTotalSeconds());
            next = rules.nextTransition(next.getInstant());
        }
        return text.toString();
    }

    private void node(Expression e) {
        String name = e.getClass().getSimpleName();
        out.append("{\"c\":");
        quote(name);
        out.append(",\"t\":").append(typeIndex(e));
        if (e instanceof Literal) {
            out.append(",\"v\":");
            value(((Literal) e).value());
        } else {
            arguments(e);
            session(e);
            out.append(",\"k\":[");
            Object[] children = operands(e);
            for (int i = 0; i < children.length; i++) {
                if (i > 0) out.append(',');
                node((Expression) children[i]);
            }
            out.append(']');
            if (!known.contains(name)) {
                out.append(",\"s\":");
                quote(sql(e));
            }
        }
        out.append('}');
    }

    /**
     * Returns the children. Flattens a chain of ANDs or ORs, left to right, so that long chains do not nest
     * deeply.
     */
    private Object[] operands(Expression e) {
        boolean chain = e instanceof And || e instanceof Or;
        ArrayList found = new ArrayList();
        ArrayDeque open = new ArrayDeque();
        open.push(e);
        while (!open.isEmpty()) {
            Expression next = (Expression) open.pop();
            if (next != e && !(chain && next.getClass() == e.getClass())) {
                found.add(next);
                continue;
            }
            Object[] children = new Object[next.children().size()];
            next.children().copyToArray(children);
            for (int i = children.length - 1; i >= 0; i--) open.push(children[i]);
        }
        return found.toArray();
    }

    /** Returns a setting of the session; "" if it has no value or this Spark does not have it. */
    private static String setting(String name) {
        try {
            String value = SQLConf.get().getConfString(name);
            return value == null ? "" : value;
        } catch (java.util.NoSuchElementException error) {
            return "";
        }
    }

    /** Returns the settings of the session that the evaluation of an expression reads and its arguments do not hold. */
    private static String[] settingsOf(Expression e) {
        if (e instanceof JsonToStructs) return OF_JSON;
        if (e instanceof TimestampFormatterHelper || (e instanceof Cast && dateToText((Cast) e))) return OF_PATTERNS;
        if (e instanceof Upper || e instanceof Lower) return OF_CASE;
        return NO_SETTING;
    }

    private static boolean dateToText(Cast cast) { return ((Expression) cast.child()).dataType().typeName().equals("date") && cast.dataType().typeName().startsWith("string"); }

    /** Writes the constructor arguments that are not expressions. Omits those without a plain form. */
    private void arguments(Expression e) {
        out.append(",\"p\":{");
        if (e instanceof scala.Product) product((scala.Product) e);
        if (e instanceof UTCTimestamp || e instanceof ConvertTimezone) zonesOfArguments(e);
        out.append('}');
    }

    /** Writes the settings of the session that the evaluation of an expression reads, if there are any. */
    private void session(Expression e) {
        String[] names = settingsOf(e);
        if (names.length == 0) return;
        out.append(",\"session\":{");
        for (int i = 0; i < names.length; i++) {
            if (i > 0) out.append(',');
            quote(names[i]);
            out.append(':');
            quote(setting(names[i]));
        }
        out.append('}');
    }

    private void zonesOfArguments(Expression e) {
        scala.collection.Iterator it = e.children().iterator();
        while (it.hasNext()) {
            Object child = it.next();
            Object constant = child instanceof Literal ? ((Literal) child).value() : null;
            if (constant instanceof UTF8String) zones.add(constant.toString());
        }
    }

    private void product(scala.Product p) {
        boolean first = true;
        for (int i = 0; i < p.productArity(); i++) {
            Object x = p.productElement(i);
            if (x instanceof Expression || !plain(x)) continue;
            if (!first) out.append(',');
            first = false;
            if (p.productElementName(i).equals("timeZoneId") && x instanceof scala.Some) zones.add(((scala.Some) x).get());
            quote(p.productElementName(i));
            out.append(':');
            value(x);
        }
    }

    private boolean plain(Object x) {
        if (x instanceof scala.Option) return ((scala.Option) x).isEmpty() || plain(((scala.Option) x).get());
        if (x instanceof scala.collection.immutable.Seq || x instanceof scala.collection.immutable.Set) {
            scala.collection.Iterator it = ((scala.collection.Iterable) x).iterator();
            return !it.hasNext() || plain(it.next());
        }
        return x == null || x instanceof scala.collection.Map || x instanceof Boolean || x instanceof Number || x instanceof Character || x instanceof String
            || x instanceof UTF8String || x instanceof Decimal || x instanceof byte[] || x instanceof GenericInternalRow || x instanceof DataType || x instanceof Class
            || x instanceof scala.Enumeration.Value || x.getClass().getSimpleName().equals("NumericEvalContext");
    }

    private void value(Object x) {
        if (x == null) {
            out.append("null");
        } else if (x instanceof Boolean || x instanceof Byte || x instanceof Short || x instanceof Integer || x instanceof Long) {
            out.append(x.toString());
        } else if (x instanceof Float || x instanceof Double) {
            quote(Double.toString(((Number) x).doubleValue()));
        } else if (x instanceof UTF8String) {
            if (((UTF8String) x).isValid()) quote(x.toString());
            else out.append("{\"strange\":\"bytes that are no UTF-8\"}");
        } else if (x instanceof Decimal) {
            quote(((Decimal) x).toJavaBigDecimal().toPlainString());
        } else if (x instanceof byte[]) {
            quote(Base64.getEncoder().encodeToString((byte[]) x));
        } else if (x instanceof scala.Option) {
            value(((scala.Option) x).isEmpty() ? null : ((scala.Option) x).get());
        } else if (x instanceof scala.collection.Map) {
            out.append(((scala.collection.Map) x).isEmpty() ? "{}" : "{\"strange\":\"options\"}");
        } else if (x instanceof DataType) {
            type((DataType) x);
        } else if (x instanceof Class) {
            quote(((Class) x).getName());
        } else if (x instanceof scala.collection.immutable.Seq || x instanceof scala.collection.immutable.Set) {
            values((scala.collection.Iterable) x);
        } else if (x instanceof GenericInternalRow) {
            items("row", ((GenericInternalRow) x).values());
        } else if (x instanceof GenericArrayData) {
            items("items", ((GenericArrayData) x).array());
        } else if (x instanceof String || x instanceof Character || x instanceof scala.Enumeration.Value) {
            quote(x.toString());
        } else if (x instanceof scala.Product && x.getClass().getSimpleName().equals("NumericEvalContext")) {
            out.append('{');
            product((scala.Product) x);
            out.append('}');
        } else {
            out.append("{\"strange\":");
            quote(x.getClass().getName());
            out.append('}');
        }
    }

    /** Writes the fields of a constant struct, or the elements of a constant array. */
    private void items(String name, Object[] values) {
        out.append("{\"").append(name).append("\":[");
        for (int i = 0; i < values.length; i++) {
            if (i > 0) out.append(',');
            value(values[i]);
        }
        out.append("]}");
    }

    private void values(scala.collection.Iterable items) {
        out.append('[');
        scala.collection.Iterator it = items.iterator();
        for (int i = 0; it.hasNext(); i++) {
            if (i > 0) out.append(',');
            value(it.next());
        }
        out.append(']');
    }

    private int typeIndex(Expression e) {
        DataType t;
        try {
            t = e.dataType();
        } catch (Exception unresolved) {
            return -1;
        }
        Integer at = (Integer) types.get(t);
        if (at == null) {
            at = Integer.valueOf(types.size());
            types.put(t, at);
        }
        return at.intValue();
    }

    /** Writes a type in Spark's JSON form, but with collations and text lengths inside complex types too. */
    private void type(DataType t) {
        if (t instanceof StructType) {
            StructField[] fields = ((StructType) t).fields();
            out.append("{\"type\":\"struct\",\"fields\":[");
            for (int i = 0; i < fields.length; i++) {
                if (i > 0) out.append(',');
                out.append("{\"name\":");
                quote(fields[i].name());
                out.append(",\"nullable\":").append(fields[i].nullable()).append(",\"type\":");
                type(fields[i].dataType());
                out.append('}');
            }
            out.append("]}");
        } else if (t instanceof ArrayType) {
            out.append("{\"type\":\"array\",\"containsNull\":").append(((ArrayType) t).containsNull()).append(",\"elementType\":");
            type(((ArrayType) t).elementType());
            out.append('}');
        } else if (t instanceof MapType) {
            out.append("{\"type\":\"map\",\"valueContainsNull\":").append(((MapType) t).valueContainsNull()).append(",\"keyType\":");
            type(((MapType) t).keyType());
            out.append(",\"valueType\":");
            type(((MapType) t).valueType());
            out.append('}');
        } else {
            quote(t.typeName());
        }
    }

    private String sql(Expression e) {
        String text;
        try {
            text = e.sql();
        } catch (Throwable noSql) {
            text = e.getClass().getSimpleName();
        }
        return text.length() <= LONGEST_SQL ? text : text.substring(0, LONGEST_SQL) + " …";
    }

    private void quote(String s) {
        out.append('"');
        for (int i = 0; i < s.length(); i++) {
            char ch = s.charAt(i);
            if (ch == '"' || ch == '\\') out.append('\\').append(ch);
            else if (ch < ' ' || (ch >= '\ud800' && ch <= '\udfff')) out.append(String.format("\\u%04x", new Object[] {Integer.valueOf(ch)}));
            else out.append(ch);
        }
        out.append('"');
    }
}
