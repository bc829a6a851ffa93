package tamis;

import org.apache.spark.ExceptionFailure;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.TaskSetManager;

/**
 * SparkListener that ends a job at its first task whose executor lacks a package, or has another version of Tamis.
 *
 * Spark would try the task spark.task.maxFailures times. The texts are those of spark/executors/executor_function.py.
 */
public final class ExecutorFailures {
    private SparkContext watched = null;

    /** Watches an application from now on. */
    public synchronized void watch(SparkContext context) {
        if (watched == context) return;
        watched = context;
        context.addSparkListener(new Watch(context));
    }

    private static boolean namesPackage(String text) {
        return text != null
            && (text.contains("[MISSING_PACKAGE] The executor on ") || text.contains("[VERSION_DIFFERS] The executor on "));
    }

    private static final class Watch extends SparkListener {
        private final SparkContext context;

        Watch(SparkContext context) { this.context = context; }

        public void onTaskEnd(SparkListenerTaskEnd event) {
            if (!(event.reason() instanceof ExceptionFailure)) return;
            ExceptionFailure failure = (ExceptionFailure) event.reason();
            if (!namesPackage(failure.description())) return;
            try {
                end(event.stageId(), event.stageAttemptId(), failure);
            } catch (Throwable anotherScheduler) {
                return; // Spark repeats the task, and then fails with the same text
            }
        }

        private void end(int stage, int attempt, ExceptionFailure failure) {
            TaskSchedulerImpl scheduler = (TaskSchedulerImpl) context.taskScheduler();
            synchronized (scheduler) {
                scala.Option tasks = scheduler.taskSetManagerForAttempt(stage, attempt);
                if (tasks.isDefined()) ((TaskSetManager) tasks.get()).abort(failure.description(), failure.exception());
            }
        }
    }
}
