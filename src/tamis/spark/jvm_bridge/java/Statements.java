package tamis;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.BiFunction;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.UnresolvedProcedure;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.Call;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SessionState;
import org.codehaus.janino.SimpleCompiler;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Parses the statements that Spark's parser lacks (OPTIMIZE, VACUUM, RESTORE, DESCRIBE HISTORY, DESCRIBE
 * DETAIL, REINDEX, REFRESH INDEX, SHOW INDEXES).
 *
 * Wraps the session's ParserInterface. Text that starts with these words is passed to Python
 * (spark/sql/statements.py); for a table of ours Python answers procedure and arguments, which become the
 * plan of a CALL. The plan is built from values, never from text, so nothing has to be quoted. All other text
 * goes to Spark's parser unchanged.
 */
public final class Statements {
    private static final String PACKAGE = "tamis";
    private static final String PARSER = "StatementParser";
    private final Set known = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap()));
    private static volatile List newer = new ArrayList();
    private Constructor made;

    /**
     * Installs the parser in this session, by replacing a field, and in later sessions, by injectParser.
     * Sessions of one application share their extensions. "more" holds the first two words of further statements
     * to pass to Python: those that this Spark lacks.
     */
    public void extend_parser(SparkSession session, BiFunction asked, List more) throws Exception {
        newer = more;
        if (made == null) made = compiled();
        SessionState state = session.sessionState();
        if (!made.getDeclaringClass().isInstance(state.sqlParser())) {
            Field field = SessionState.class.getDeclaredField("sqlParser");
            field.setAccessible(true);
            field.set(state, made.newInstance(new Object[] {state.sqlParser(), asked}));
        }
        SparkSessionExtensions later = session.extensions();
        if (known.add(later)) later.injectParser(new Builder(made, asked));
    }

    /**
     * Compiles the parser class, which forwards every method of this Spark's ParserInterface to the session's
     * own parser. It cannot be a proxy: parsers throw checked exceptions that their methods do not declare,
     * and a proxy may not.
     */
    private static Constructor compiled() throws Exception {
        String type = ParserInterface.class.getName();
        StringBuilder out = new StringBuilder("package " + PACKAGE + ";\npublic final class " + PARSER + " implements " + type + " {\n"
            + "private final " + type + " known;\nprivate final java.util.function.BiFunction asked;\n"
            + "public " + PARSER + "(" + type + " known, java.util.function.BiFunction asked) { this.known = known; this.asked = asked; }\n");
        Set seen = new HashSet();
        Method[] methods = ParserInterface.class.getMethods();
        for (int i = 0; i < methods.length; i++) {
            Class[] types = methods[i].getParameterTypes();
            if (Modifier.isStatic(methods[i].getModifiers()) || !seen.add(methods[i].getName() + Arrays.asList(types))) continue;
            out.append(method(methods[i], types));
        }
        SimpleCompiler compiler = new SimpleCompiler();
        compiler.setParentClassLoader(Statements.class.getClassLoader());
        compiler.setSourceVersion(17);
        compiler.setTargetVersion(17);
        compiler.cook(out.append("}\n").toString());
        return compiler.getClassLoader().loadClass(PACKAGE + "." + PARSER).getConstructors()[0];
    }

    private static String method(Method method, Class[] types) {
        StringBuilder params = new StringBuilder();
        StringBuilder args = new StringBuilder();
        for (int p = 0; p < types.length; p++) {
            params.append(p == 0 ? "" : ", ").append(types[p].getCanonicalName()).append(" a").append(p);
            args.append(p == 0 ? "" : ", ").append("a").append(p);
        }
        StringBuilder clause = new StringBuilder();
        Class[] thrown = method.getExceptionTypes();
        for (int t = 0; t < thrown.length; t++) clause.append(t == 0 ? " throws " : ", ").append(thrown[t].getCanonicalName());
        String result = method.getReturnType().getCanonicalName();
        String ours = method.getName().startsWith("parsePlan") && types.length > 0 && types[0] == String.class
            ? "if (tamis.Statements.ours(a0)) { Object said = tamis.Statements.plan(asked.apply(\"statement\", a0)); if (said != null) return (" + result + ") said; }\n"
            : "";
        return "public " + result + " " + method.getName() + "(" + params + ")" + clause + " {\n" + ours + (result.equals("void") ? "" : "return ")
            + "known." + method.getName() + "(" + args + ");\n}\n";
    }

    /**
     * Returns the plan of a CALL, given catalog, procedure, and name and value of each argument; null (not
     * ours) for null.
     */
    public static Object plan(Object said) {
        if (said == null) return null;
        List values = (List) said;
        List arguments = new ArrayList();
        for (int i = 2; i < values.size(); i += 2)
            arguments.add(new NamedArgumentExpression((String) values.get(i), Literal$.MODULE$.apply(values.get(i + 1))));
        List name = Arrays.asList(new Object[] {values.get(0), "system", values.get(1)});
        return new Call(new UnresolvedProcedure(CollectionConverters.asScala(name).toSeq()), CollectionConverters.asScala(arguments).toSeq(), true);
    }

    /**
     * Whether a text starts with the words of one of our statements, in any case, after blanks and comments.
     */
    public static boolean ours(String text) {
        int at = start(text);
        String first = word(text, at);
        if (first.equals("OPTIMIZE") || first.equals("VACUUM") || first.equals("RESTORE") || first.equals("REINDEX")) return true;
        boolean lacking = false;
        for (int i = 0; i < newer.size(); i++) lacking |= ((String) newer.get(i)).startsWith(first + " ");
        if (!lacking && !first.equals("DESCRIBE") && !first.equals("DESC") && !first.equals("REFRESH") && !first.equals("SHOW")) return false;
        String second = word(text, at + first.length() + start(text.substring(at + first.length())));
        if (lacking) return newer.contains(first + " " + second);
        if (first.equals("REFRESH")) return second.equals("INDEX");
        if (first.equals("SHOW")) return second.equals("INDEXES");
        return second.equals("HISTORY") || second.equals("DETAIL");
    }

    private static int start(String text) {
        int at = 0;
        while (at < text.length()) {
            if (Character.isWhitespace(text.charAt(at))) {
                at++;
            } else if (text.startsWith("--", at)) {
                int end = text.indexOf('\n', at);
                at = end < 0 ? text.length() : end + 1;
            } else if (text.startsWith("/*", at) && !text.startsWith("/*+", at) && text.indexOf("*/", at + 2) >= 0) {
                at = text.indexOf("*/", at + 2) + 2;
            } else {
                break;
            }
        }
        return at;
    }

    private static String word(String text, int at) {
        int end = at;
        while (end < text.length() && end - at < 12 && Character.isLetter(text.charAt(end))) end++;
        return text.substring(at, end).toUpperCase(java.util.Locale.ROOT);
    }

    /** Spark calls this function for the parser of each later session. */
    public static final class Builder extends scala.runtime.AbstractFunction2 {
        private final Constructor made;
        private final BiFunction asked;

        public Builder(Constructor made, BiFunction asked) {
            this.made = made;
            this.asked = asked;
        }

        public Object apply(Object session, Object known) {
            try {
                return made.newInstance(new Object[] {known, asked});
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        }
    }
}
