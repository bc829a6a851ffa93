package tamis;

import java.lang.reflect.Array;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.types.StructType;

/**
 * InvocationHandler that answers the methods of any Java interfaces by one Python object.
 *
 * Methods that Python does not define run as the interface's default method. Made by Tools.make for
 * Bridge.implement (spark/jvm_bridge/adapter.py); every Java object that Python implements depends on it. The
 * other classes of this folder recognise such objects by keyOf.
 */
public final class Handler implements InvocationHandler {
    private static final Object NULL = new Object();
    private static final String RESOLUTION = "org.apache.spark.sql.catalyst.analysis.";
    /**
     * Functions that answer methods in Java, by the method's name. They get the handler and the only argument; null
     * leaves the call to Python.
     */
    public static final Map makers = new ConcurrentHashMap();
    private final BiFunction target;
    private final Set methods;
    /**
     * Methods whose answers are cached; they take no arguments. The value names the method (or "") after
     * which the same thread gets one fresh answer.
     */
    private final Map constant;
    private final Map answers;
    /** Lists of methods whose given answers no longer hold once the method that is the key was called. */
    private final Map forgets;
    private final ThreadLocal moved = new ThreadLocal();
    /** The key of the table under which the relation was analysed that this thread is refreshing, or null. */
    private static final ThreadLocal analysed = new ThreadLocal();
    public final String key;
    /** Text that is equal to that of another object exactly if both are equal; null if only Python knows. */
    private final String same;

    public Handler(BiFunction target, Set methods, Map constant, Map forgets, String key, Map answers, String same) {
        this.target = target;
        this.methods = methods;
        this.constant = constant;
        this.forgets = forgets;
        this.key = key;
        this.answers = answers;
        this.same = same;
    }

    /** Returns the key of the Python object behind a proxy, or null for any other object. */
    public static String keyOf(Object object) {
        Handler handler = handlerOf(object);
        return handler == null ? null : handler.key;
    }

    /** Makes a proxy of ours ask Python again for all that it remembers, except its hash. */
    public static void forgetAnswers(Object proxy) {
        handlerOf(proxy).answers.keySet().retainAll(Collections.singleton("hashCode"));
    }

    private static Handler handlerOf(Object object) {
        if (object == null || !Proxy.isProxyClass(object.getClass())) return null;
        InvocationHandler handler = Proxy.getInvocationHandler(object);
        return handler instanceof Handler ? (Handler) handler : null;
    }

    public Object invoke(Object proxy, Method method, Object[] args) throws Throwable {
        String name = method.getName();
        int count = args == null ? 0 : args.length;
        if (method.getDeclaringClass() == Object.class) {
            if (name.equals("hashCode")) {
                if (!answers.containsKey(name)) answers.put(name, Integer.valueOf(((Number) call(name, null)).intValue()));
                return answers.get(name);
            }
            if (name.equals("toString")) return call(name, null);
            Handler other = handlerOf(args[0]);
            if (other == null) return Boolean.FALSE;
            if (same != null && other.same != null) return Boolean.valueOf(same.equals(other.same));
            return other.key.equals(key) ? Boolean.TRUE : call("equals", new Object[] {other.key});
        }
        if (count == 1 && methods.contains(name + "!")) {
            BiFunction maker = (BiFunction) makers.get(name);
            Object made = maker == null ? null : maker.apply(this, args[0]);
            if (made != null && constant.containsValue(name)) moved.set(name);
            if (made != null) return made;
        }
        if (methods.contains(name) || methods.contains(name + "/" + count)) {
            try {
                Object given = count == 0 && !constant.containsKey(name) ? answers.get(name) : null;
                if (given != null) return given;
                Object own = count == 0 && constant.containsKey(name) ? constant(method) : coerce(method.getReturnType(), call(name, args));
                return own instanceof StructType ? schemaForReader((StructType) own) : own;
            } catch (Throwable error) {
                throw permitted(error, method.getExceptionTypes());
            }
        }
        if (methods.contains(name + "@")) {
            int frames = refreshFrames();
            if (frames > 0) {
                String before = (String) analysed.get();
                analysed.set(frames == 1 ? key : null);
                if (frames > 1) answer("1:" + name, before == null ? key : before);
                return Array.newInstance(method.getReturnType().getComponentType(), 0);
            }
        }
        if (count > 1 && args[count - 1] instanceof Map && hasOption(name, (Map) args[count - 1])) {
            Object own = call(name, args);
            if (own != null) return coerce(method.getReturnType(), own);
        }
        if (method.isDefault()) {
            try {
                return InvocationHandler.invokeDefault(proxy, method, args);
            } catch (Throwable error) {
                throw permitted(error, method.getExceptionTypes());
            }
        }
        throw new UnsupportedOperationException(method.getDeclaringClass().getName() + "." + name + " is not implemented by tamis");
    }

    /** Whether the options have a key that Python answers this method for. */
    private boolean hasOption(String name, Map options) {
        if (options.isEmpty()) return false;
        for (Iterator it = methods.iterator(); it.hasNext();) {
            String entry = (String) it.next();
            if (entry.startsWith(name + "?") && options.containsKey(entry.substring(name.length() + 1))) return true;
        }
        return false;
    }

    /** Returns the cached answer, unless this thread has just called the method that changes it. */
    private Object constant(Method method) throws Throwable {
        String name = method.getName();
        if (constant.get(name).equals(moved.get())) {
            moved.remove();
            return coerce(method.getReturnType(), call(name, null));
        }
        Object known = answers.get(name);
        if (known == null || known instanceof Deferred) {
            known = known == null ? null : ((Deferred) known).answer();
            if (known == null) known = call(name, null);
            if (known instanceof Answers) {
                Answers both = (Answers) known;
                answers.putIfAbsent(both.name, both.other);
                known = both.answer;
            }
            known = coerce(method.getReturnType(), known);
            answers.put(name, known == null ? NULL : known);
        }
        return known == NULL ? null : coerce(method.getReturnType(), known);
    }

    /**
     * The number of Spark's validating methods that call, one within another; 0 unless Spark refreshes the tables of
     * a plan in order to run it.
     *
     * For each relation, the outer of two methods asks the table under which it was analysed, and calls the inner,
     * which asks the current table.
     */
    private static int refreshFrames() {
        StackTraceElement[] stack = Thread.currentThread().getStackTrace();
        int frames = 0;
        boolean refreshing = false;
        for (int i = 0; i < stack.length; i++) {
            String type = stack[i].getClassName();
            if (type.equals("org.apache.spark.sql.execution.CacheManager")) return 0;
            refreshing |= type.startsWith("org.apache.spark.sql.execution.datasources.v2.V2TableRefreshUtil");
            if (!refreshing && type.startsWith("org.apache.spark.sql.connector.catalog.V2TableUtil")) frames++;
        }
        return refreshing ? frames : 0;
    }

    /**
     * Returns a table's schema as the reader that asks for it takes it. Spark makes STRING of CHAR and VARCHAR, but not
     * for a stream, whose analysis fails on them.
     */
    private static StructType schemaForReader(StructType schema) {
        if (!CharVarcharUtils.hasCharVarchar(schema)) return schema;
        StackTraceElement[] stack = Thread.currentThread().getStackTrace();
        for (int i = 1; i < stack.length; i++) {
            String type = stack[i].getClassName();
            if (!type.startsWith("org.apache.spark.") || type.equals(Table.class.getName())) continue;
            boolean stream = type.startsWith(RESOLUTION + "RelationResolution") || type.startsWith(RESOLUTION + "ResolveDataSource") || type.contains("DataStreamReader");
            return stream ? CharVarcharUtils.replaceCharVarcharWithStringInSchema(schema) : schema;
        }
        return schema;
    }

    /** Returns the error if the method may throw it; wraps other checked exceptions, keeping their text. */
    private static Throwable permitted(Throwable error, Class[] declared) {
        if (error instanceof RuntimeException || error instanceof Error) return error;
        for (int i = 0; i < declared.length; i++) if (declared[i].isInstance(error)) return error;
        String code = error instanceof org.apache.spark.SparkThrowable ? ((org.apache.spark.SparkThrowable) error).getCondition() : "JAVA_ERROR";
        return new Failure(code, error.getMessage(), error);
    }

    private Object call(String name, Object[] args) throws Throwable {
        if (constant.containsValue(name)) moved.set(name);
        List stale = (List) forgets.get(name);
        for (int i = 0; stale != null && i < stale.size(); i++) answers.remove(stale.get(i));
        int count = args == null ? 0 : args.length;
        Object[] sent = new Object[count];
        for (int i = 0; i < count; i++) sent[i] = args[i] instanceof Identifier ? text((Identifier) args[i]) : args[i];
        if (count == 2 && sent[0] instanceof String) return answer("text:" + name + ":" + sent[0], sent[1]);
        return answer(count + ":" + name, count == 0 ? null : count == 1 ? sent[0] : sent);
    }

    private Object answer(String call, Object argument) throws Throwable {
        Object result = target.apply(call, argument);
        if (result instanceof Thrown) throw ((Thrown) result).cause;
        return result;
    }

    /** Calls a method of Python with an object, for an interface whose method throws nothing checked. */
    public Object ask(String name, Object argument) { return asked("1:" + name, argument); }

    /** As above, with a text and an object. */
    public Object ask(String name, String text, Object argument) { return asked("text:" + name + ":" + text, argument); }

    private Object asked(String call, Object argument) {
        try {
            return answer(call, argument);
        } catch (Throwable error) {
            Throwable found = permitted(error, new Class[0]);
            if (found instanceof Error) throw (Error) found;
            throw (RuntimeException) found;
        }
    }

    /** Returns the namespace parts and the name of an identifier, each after a NUL. */
    public static String text(Identifier identifier) {
        StringBuilder out = new StringBuilder();
        String[] namespace = identifier.namespace();
        for (int i = 0; i < namespace.length; i++) out.append("\u0000").append(namespace[i]);
        return out.append("\u0000").append(identifier.name()).toString();
    }

    /**
     * Converts a Python result to the method's return type. Py4J sends only the narrowest numbers, and lists; texts
     * are the names of an enum's constant, and of columns, each after a NUL.
     */
    private static Object coerce(Class type, Object value) {
        if (type == void.class || value == null) return null;
        if (value instanceof String && type.isEnum()) return Enum.valueOf(type, (String) value);
        if (value instanceof String && type == NamedReference[].class) return columns((String) value);
        if (value instanceof Number) {
            Number number = (Number) value;
            if (type == int.class || type == Integer.class) return Integer.valueOf(number.intValue());
            if (type == long.class || type == Long.class) return Long.valueOf(number.longValue());
            if (type == double.class || type == Double.class) return Double.valueOf(number.doubleValue());
            return value;
        }
        if (value instanceof Collection && !type.isInstance(value)) {
            Collection items = (Collection) value;
            if (type.isArray()) {
                Object array = Array.newInstance(type.getComponentType(), items.size());
                int i = 0;
                for (Iterator it = items.iterator(); it.hasNext(); i++) Array.set(array, i, coerce(type.getComponentType(), it.next()));
                return array;
            }
            if (type == Set.class) return new LinkedHashSet(items);
            if (type == Iterator.class) return items.iterator();
        }
        return value;
    }

    private static NamedReference[] columns(String names) {
        if (names.length() == 0) return new NamedReference[0];
        String[] each = names.substring(1).split("\u0000", -1);
        NamedReference[] out = new NamedReference[each.length];
        for (int i = 0; i < each.length; i++) out[i] = FieldReference.column(each[i]);
        return out;
    }

    /** Returns the texts of form 7 (wire_format.py): each after its length in chars and a colon. */
    public static List unpacked(String text) {
        List out = new ArrayList();
        for (int at = 0; at < text.length();) {
            int start = text.indexOf(':', at) + 1;
            at = start + Integer.parseInt(text.substring(at, start - 1));
            out.add(text.substring(start, at));
        }
        return out;
    }

    /** A given answer that is made when it is first asked for. Python is asked if it is null. */
    public interface Deferred {
        Object answer() throws Exception;
    }

    /** Returned by Python for a constant method, or by Deferred: its answer, and that of another one. */
    public static final class Answers {
        private final Object answer;
        private final String name;
        private final Object other;

        public Answers(Object answer, String name, Object other) {
            this.answer = answer;
            this.name = name;
            this.other = other;
        }
    }

    /** Returned by Python in order to throw. */
    public static final class Thrown {
        public final Throwable cause;
        public Thrown(Throwable cause) { this.cause = cause; }
    }

    /**
     * A TamisError (or another failure in Python) as a Spark exception, so that PySpark shows its text and
     * code.
     */
    public static final class Failure extends org.apache.spark.SparkRuntimeException {
        private final String code;
        private final String text;

        public Failure(String code, String text, Throwable cause) {
            super("INTERNAL_ERROR", new scala.collection.immutable.Map.Map1("message", ""), cause, new org.apache.spark.QueryContext[0], "");
            this.code = code;
            this.text = text;
        }

        public String getMessage() { return text; }
        public String getCondition() { return code; }
        @SuppressWarnings("deprecation")
        public String getErrorClass() { return code; }
        public String getSqlState() { return null; }
        public boolean isInternalError() { return false; }
        public Map getMessageParameters() { return new HashMap(); }
    }
}
