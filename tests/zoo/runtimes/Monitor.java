// SPDX-License-Identifier: Apache-2.0

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.SynchronousQueue;

/**
 * Monitor WAY SEED: a thread of Java waits.
 *   monitor  another thread computes in a synchronized block
 *   queue    another thread computes, and hands over a result
 *   gc       another thread calls for a collection of a large heap, which stops all others (-XX:+UseSerialGC)
 */
final class Monitor {
    private static final int ROUNDS = 6;
    private static final ThreadMXBean TIMES = ManagementFactory.getThreadMXBean();
    private static final Object LOCK = new Object();
    private static final SynchronousQueue<Long> ASKED = new SynchronousQueue<>();
    private static final SynchronousQueue<Long> LOCKED = new SynchronousQueue<>();
    private static final SynchronousQueue<Long> ANSWERS = new SynchronousQueue<>();
    private static volatile int otherTid;
    private static String way;

    private static int tid() throws Exception {
        return Integer.parseInt(Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString());
    }

    private static long ran(int tid) throws Exception {
        return Long.parseLong(Files.readString(Path.of("/proc/self/task/" + tid + "/schedstat")).split(" ")[0]);
    }

    private static int threadNamed(String name) throws Exception {
        try (var tasks = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path task : tasks) {
                if (Files.readString(task.resolve("comm")).strip().equals(name)) {
                    return Integer.parseInt(task.getFileName().toString());
                }
            }
        }
        throw new IllegalStateException(name);
    }

    private static long compute(long ms) {
        long begin = TIMES.getCurrentThreadCpuTime();
        long sum = 0;
        while (TIMES.getCurrentThreadCpuTime() - begin < ms * 1_000_000) {
            for (int i = 0; i < 2000; i++) {
                sum += i;
            }
        }
        return TIMES.getCurrentThreadCpuTime() - begin + (sum & 0);
    }

    private static void work() {
        try {
            otherTid = tid();
            for (;;) {
                long ms = ASKED.take();
                if (way.equals("monitor")) {
                    long ran;
                    synchronized (LOCK) {
                        LOCKED.put(0L);
                        ran = compute(ms);
                    }
                    ANSWERS.put(ran);
                } else {
                    ANSWERS.put(compute(ms));
                }
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static void rounds(long seed) throws Exception {
        int self = tid();
        for (int i = 0; i < ROUNDS; i++) {
            long ms = 80 + (seed * 7 + i * 13) % 60;
            long begin = System.nanoTime();
            long ran = 0;
            ASKED.put(ms);
            if (way.equals("monitor")) {
                LOCKED.take();
                begin = System.nanoTime();
                synchronized (LOCK) {
                    ran = 1;
                }
            } else {
                ran = ANSWERS.take();
            }
            long end = System.nanoTime();
            if (way.equals("monitor")) {
                ran = ANSWERS.take();
            }
            say(i, self, begin, end, ran, otherTid, "holder");
        }
    }

    /** Each object is held by the one before, so that the collector has to go through all of them. */
    private static Object[] heap(int count) {
        Object[] last = null;
        for (int i = 0; i < count; i++) {
            last = new Object[] {last, new byte[16]};
        }
        return last;
    }

    private static void collections() throws Exception {
        int self = tid();
        int collector = threadNamed("VM Thread");
        Object[] kept = heap(1_500_000);
        for (int i = 0; i < ROUNDS; i++) {
            long before = ran(collector);
            long begin = System.nanoTime();
            System.gc();
            long end = System.nanoTime();
            say(i, self, begin, end, ran(collector) - before, collector, "VM_Thread");
        }
        if (kept == null) {
            throw new IllegalStateException();
        }
    }

    private static void say(int i, int tid, long begin, long end, long ran, int other, String comm) {
        long pid = ProcessHandle.current().pid();
        System.out.printf("victim i=%d pid=%d tid=%d begin=%d end=%d%n", i, pid, tid, begin, end);
        System.out.printf("cause i=%d cause=%s ns=%d pid=%d tid=%d comm=%s span=- object=-%n",
                i, way.equals("monitor") ? "lock" : "user-work", ran, pid, other, comm);
    }

    private static void victim(long seed) {
        try {
            if (way.equals("gc")) {
                collections();
            } else {
                rounds(seed);
            }
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);
        }
    }

    public static void main(String[] arguments) throws Exception {
        way = arguments[0];
        long seed = Long.parseLong(arguments[1]);
        Thread other = new Thread(Monitor::work, "holder");
        other.setDaemon(true);
        other.start();
        System.out.printf("ready pid=%d%n", ProcessHandle.current().pid());
        System.in.readAllBytes();
        Thread victim = new Thread(() -> victim(seed), "victim");
        victim.start();
        victim.join();
    }
}
