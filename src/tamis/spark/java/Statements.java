package tamis;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.function.BiFunction;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SessionState;

/** Statements that Spark's parser does not know, put into its words before it reads them. */
public final class Statements {
    private final Set known = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap()));

    /** Sees to it that this session, and those made of it later, ask about statements that begin as ours do. Sessions of one application share their extensions. */
    public void teach(SparkSession session, BiFunction asked) throws Exception {
        SessionState state = session.sessionState();
        if (!taught(state.sqlParser())) {
            Field field = SessionState.class.getDeclaredField("sqlParser");
            field.setAccessible(true);
            field.set(state, parser(state.sqlParser(), asked));
        }
        SparkSessionExtensions later = session.extensions();
        if (known.add(later)) later.injectParser(new Builder(asked));
    }

    /** What begins a statement of ours: its first two words, in capitals. Comments before it do not count. */
    static boolean ours(String text) {
        int at = start(text);
        String first = word(text, at);
        if (first.equals("OPTIMIZE") || first.equals("VACUUM") || first.equals("RESTORE")) return true;
        if (!first.equals("DESCRIBE") && !first.equals("DESC")) return false;
        String second = word(text, at + first.length() + start(text.substring(at + first.length())));
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

    private static boolean taught(Object parser) {
        return Proxy.isProxyClass(parser.getClass()) && Proxy.getInvocationHandler(parser) instanceof Parser;
    }

    static Object parser(Object known, BiFunction asked) {
        return Proxy.newProxyInstance(ParserInterface.class.getClassLoader(), new Class[] {ParserInterface.class}, new Parser(known, asked));
    }

    /** For sessions made later: Spark asks it for the parser of each. */
    public static final class Builder extends scala.runtime.AbstractFunction2 {
        private final BiFunction asked;

        public Builder(BiFunction asked) { this.asked = asked; }

        public Object apply(Object session, Object known) { return parser(known, asked); }
    }

    /** The session's own parser, but for statements of ours. */
    public static final class Parser implements InvocationHandler {
        private final Object known;
        private final BiFunction asked;

        public Parser(Object known, BiFunction asked) {
            this.known = known;
            this.asked = asked;
        }

        public Object invoke(Object proxy, Method method, Object[] args) throws Throwable {
            if (method.getName().startsWith("parsePlan") && ours((String) args[0])) {
                Object said = asked.apply("statement", args[0]);
                if (said != null) args[0] = said;
            }
            try {
                return method.invoke(known, args);
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }
    }
}
