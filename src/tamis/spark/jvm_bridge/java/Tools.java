package tamis;

import java.lang.invoke.MethodHandles;
import java.lang.reflect.Array;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import javax.net.SocketFactory;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import py4j.CallbackClient;
import py4j.Gateway;
import py4j.GatewayServer;
import py4j.PythonClient;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Operations that Python cannot do, or only slowly, over Py4J: proxies, reflection, class definition, bulk
 * conversion.
 *
 * Used by Bridge (spark/jvm_bridge/adapter.py) only. Methods are not static, because Py4J looks up classes by
 * name in another class loader.
 */
public final class Tools {
    private final ClassLoader loader = Tools.class.getClassLoader();
    private final Map shared = new LinkedHashMap() {
        protected boolean removeEldestEntry(Map.Entry eldest) { return size() > 100; }
    };

    /**
     * Makes an object that Python implements, as make does, and gives it the answers that "facts" makes of a text and
     * an object: a map by the method's name.
     */
    public Object makeKnowing(
        String interfaces, String methods, BiFunction target, String key, String same, BiFunction facts, String text, Object given) throws Exception {
        return made(interfaces, methods, target, key, (Map) facts.apply(text, given), same);
    }

    /**
     * As makeKnowing, and makes the answer of the method "part": another object that Python implements. It gets the
     * answers in the map that "facts" has made for that method, if any, and the hash code of the first.
     */
    public Object makeWithPart(
        String interfaces, String methods, BiFunction target, String key, String same, BiFunction facts, String text, Object given,
        String part, String partInterface, String partMethods, BiFunction partTarget, String partKey, String partSame)
        throws Exception {
        Map known = (Map) facts.apply(text, given);
        Map ofPart = known.containsKey(part) ? (Map) known.get(part) : new ConcurrentHashMap();
        ofPart.put("hashCode", known.get("hashCode"));
        known.put(part, made(partInterface, partMethods, partTarget, partKey, ofPart, partSame));
        return made(interfaces, methods, target, key, known, same);
    }

    public Object make(String interfaces, String methods, BiFunction target, String key, String same, String alike) throws Exception {
        return made(interfaces, methods, target, key, alike == null ? new ConcurrentHashMap() : answers(alike), same);
    }

    /** As planWith, then make, in one call. */
    public Object planAndMake(
        SparkStrategy strategy, Rule rule, Runnable more, String interfaces, String methods, BiFunction target, String key, String same, String alike)
        throws Exception {
        planWith(strategy, rule, more);
        return make(interfaces, methods, target, key, same, alike);
    }

    private Object made(String interfaces, String methods, BiFunction target, String key, Map known, String same) throws Exception {
        String[] names = interfaces.split(",");
        Class[] classes = new Class[names.length];
        for (int i = 0; i < names.length; i++) classes[i] = Class.forName(names[i], true, loader);
        Set answered = new HashSet();
        Map constant = new HashMap();
        Map forgets = new HashMap();
        String[] entries = methods.split(",");
        for (int i = 0; i < entries.length; i++) {
            String[] after = entries[i].split("\\^");
            if (after.length > 1) {
                forgets.put(after[0], Arrays.asList(after).subList(1, after.length));
                continue;
            }
            int at = entries[i].indexOf('=');
            answered.add(at < 0 ? entries[i] : entries[i].substring(0, at));
            if (at >= 0) constant.put(entries[i].substring(0, at), entries[i].substring(at + 1));
        }
        return Proxy.newProxyInstance(loader, classes, new Handler(target, answered, constant, forgets, key, known, same));
    }

    /**
     * Returns the cached answers that all objects with the same "alike" share; the oldest of 100 are dropped.
     */
    private Map answers(String alike) {
        synchronized (shared) {
            Map found = (Map) shared.get(alike);
            if (found == null) shared.put(alike, found = new ConcurrentHashMap());
            return found;
        }
    }

    /**
     * Adds the strategy, and the rule if not null, to the active session unless it has one of the same class. Runs
     * {@code more} first, if not null.
     */
    public void planWith(SparkStrategy strategy, Rule rule, Runnable more) {
        if (more != null) more.run();
        SparkSession session = (SparkSession) SparkSession.active();
        Seq strategies = with(session.experimental().extraStrategies(), strategy);
        if (strategies != null) session.experimental().extraStrategies_$eq(strategies);
        Seq rules = rule == null ? null : with(session.experimental().extraOptimizations(), rule);
        if (rules != null) session.experimental().extraOptimizations_$eq(rules);
    }

    private static Seq with(Seq known, Object one) {
        for (int i = 0; i < known.size(); i++) if (known.apply(i).getClass() == one.getClass()) return null;
        List all = new ArrayList(CollectionConverters.asJava(known));
        all.add(one);
        return CollectionConverters.asScala(all).toSeq();
    }

    /**
     * Makes Java send this token with every connection that it opens to Python's callback server.
     *
     * The client of the server is replaced, because it cannot be given a token later.
     */
    public void sendToken(GatewayServer server, String token) throws Exception {
        Gateway gateway = server.getGateway();
        CallbackClient old = (CallbackClient) server.getCallbackClient();
        Field client = Gateway.class.getDeclaredField("cbClient");
        client.setAccessible(true);
        client.set(gateway, new PythonClient(
            gateway, null, old.getPort(), old.getAddress(), CallbackClient.DEFAULT_MIN_CONNECTION_TIME, TimeUnit.SECONDS,
            SocketFactory.getDefault(), server, old.isMemoryManagementEnabled(), old.getReadTimeout(), token));
    }

    public String keyOf(Object object) { return Handler.keyOf(object); }

    public Object thrown(Throwable cause) { return new Handler.Thrown(cause); }

    public Object failed(String code, String text, String trace) { 
        return new Handler.Thrown(new Handler.Failure(code, text, trace == null ? null : new RuntimeException(trace)));
    }

    /**
     * Calls a method by name and number of arguments, even a private one or one of a package-private class.
     */
    public Object call(Object object, String name, Object[] args) throws Throwable {
        for (Class type = object.getClass(); type != null; type = type.getSuperclass()) {
            Method[] methods = type.getDeclaredMethods();
            for (int i = 0; i < methods.length; i++) {
                if (!methods[i].getName().equals(name) || methods[i].getParameterCount() != args.length) continue;
                methods[i].setAccessible(true);
                try {
                    return methods[i].invoke(object, args);
                } catch (java.lang.reflect.InvocationTargetException e) {
                    throw e.getCause();
                }
            }
        }
        throw new NoSuchMethodException(object.getClass().getName() + "." + name);
    }

    /** Whether a class has a public method of this name, or a constructor for "new", with this number of parameters. */
    public boolean offers(String type, String name, int count) throws Exception {
        Class known = Class.forName(type, false, loader);
        Executable[] all = name.equals("new") ? (Executable[]) known.getConstructors() : (Executable[]) known.getMethods();
        for (int i = 0; i < all.length; i++)
            if ((name.equals("new") || all[i].getName().equals(name)) && all[i].getParameterCount() == count) return true;
        return false;
    }

    public Object array(String type, List items) throws Exception {
        Class component = Class.forName(type, true, loader);
        return items.toArray((Object[]) Array.newInstance(component, items.size()));
    }

    /** Returns the namespace parts and the name of an identifier, each after a NUL. */
    public String identifier(org.apache.spark.sql.connector.catalog.Identifier identifier) { return Handler.text(identifier); }

    /** Joins the strings of a collection or array, each after a NUL. */
    public String joined(Object strings) {
        Collection items = strings instanceof Collection ? (Collection) strings : Arrays.asList((Object[]) strings);
        StringBuilder out = new StringBuilder();
        for (Iterator it = items.iterator(); it.hasNext();) out.append("\u0000").append(it.next());
        return out.toString();
    }

    /** Joins the keys with this prefix and their values, each after a NUL. Keys of options are as they were given. */
    public String entries(Map given, String prefix) {
        Map map = given instanceof CaseInsensitiveStringMap ? ((CaseInsensitiveStringMap) given).asCaseSensitiveMap() : given;
        StringBuilder out = new StringBuilder();
        synchronized (map) {
            for (Iterator it = map.entrySet().iterator(); it.hasNext();) {
                Map.Entry entry = (Map.Entry) it.next();
                if (((String) entry.getKey()).startsWith(prefix))
                    out.append("\u0000").append(entry.getKey()).append("\u0000").append(entry.getValue());
            }
        }
        return out.toString();
    }

    public List strings(String joined) {
        return joined.length() == 0 ? new ArrayList() : new ArrayList(Arrays.asList(joined.substring(1).split("\u0000", -1)));
    }

    /**
     * Generates the Java source of a class that forwards every method of the interfaces to the delegate of
     * its name.
     */
    public String delegateSource(String packageName, String className, String interfaces) throws Exception {
        String[] names = interfaces.split(",");
        StringBuilder out = new StringBuilder("package " + packageName + ";\npublic class " + className + " implements " + interfaces + " {\n"
            + "public static final java.util.Map delegates = new java.util.concurrent.ConcurrentHashMap();\n"
            + "private Object delegate;\n"
            + "public void initialize(String name, org.apache.spark.sql.util.CaseInsensitiveStringMap options) {\n"
            + "delegate = delegates.get(name);\n"
            + "if (delegate == null) throw new IllegalStateException(\"Catalog \" + name + \" is not attached: call tamis.attach.\");\n}\n");
        Set seen = new HashSet();
        for (int n = 0; n < names.length; n++) {
            Method[] methods = Class.forName(names[n], true, loader).getMethods();
            for (int i = 0; i < methods.length; i++) {
                Method method = methods[i];
                Class[] types = method.getParameterTypes();
                String signature = method.getName() + Arrays.asList(types);
                if (java.lang.reflect.Modifier.isStatic(method.getModifiers()) || method.getName().equals("initialize") || !seen.add(signature)) continue;
                StringBuilder params = new StringBuilder();
                StringBuilder args = new StringBuilder();
                for (int p = 0; p < types.length; p++) {
                    params.append(p == 0 ? "" : ", ").append(types[p].getCanonicalName()).append(" a").append(p);
                    args.append(p == 0 ? "" : ", ").append("a").append(p);
                }
                Class[] thrown = method.getExceptionTypes();
                StringBuilder clause = new StringBuilder();
                for (int t = 0; t < thrown.length; t++) clause.append(t == 0 ? " throws " : ", ").append(thrown[t].getCanonicalName());
                String result = method.getReturnType().getCanonicalName();
                out.append("public " + result + " " + method.getName() + "(" + params + ")" + clause + " { " + (result.equals("void") ? "" : "return ")
                    + "((" + method.getDeclaringClass().getCanonicalName() + ") delegate)." + method.getName() + "(" + args + "); }\n");
            }
        }
        return out.append("}\n").toString();
    }

    /**
     * Defines a compiled class in the package of a Spark class, where every session's class loader finds it.
     */
    public Class define(String neighbour, byte[] code) throws Exception {
        Class beside = Class.forName(neighbour, true, loader);
        return MethodHandles.privateLookupIn(beside, MethodHandles.lookup()).defineClass(code);
    }

    /**
     * Defines compiled classes of another package in the class loader of a Spark class. Needs --add-opens of
     * java.lang, which Spark's own launcher passes to the JVM.
     */
    public void defineAll(String neighbour, Map codes) throws Exception {
        ClassLoader home = Class.forName(neighbour, true, loader).getClassLoader();
        Method define = ClassLoader.class.getDeclaredMethod("defineClass", new Class[] {String.class, byte[].class, int.class, int.class});
        define.setAccessible(true);
        for (Iterator it = codes.entrySet().iterator(); it.hasNext();) {
            Map.Entry entry = (Map.Entry) it.next();
            byte[] code = (byte[]) entry.getValue();
            define.invoke(home, new Object[] {entry.getKey(), code, Integer.valueOf(0), Integer.valueOf(code.length)});
        }
    }
}
