// SPDX-License-Identifier: Apache-2.0
/* Two threads that wait for ever, called from methods of this class. */
import java.util.concurrent.ArrayBlockingQueue;

public class Kiosk {
	static final ArrayBlockingQueue<String> desk = new ArrayBlockingQueue<>(1);
	static final Object till = new Object();

	static void borrow() throws Exception {
		desk.take();
	}

	static void hold() throws Exception {
		synchronized (till) {
			till.wait();
		}
	}

	static void start(String name, boolean holds) {
		new Thread(name) {
			public void run() {
				try {
					if (holds)
						hold();
					else
						borrow();
				} catch (Exception e) {
					System.exit(1);
				}
			}
		}.start();
	}

	public static void main(String[] arguments) throws Exception {
		start("clerk", false);
		start("boss", true);
		Thread.sleep(500);
		System.out.println("ready");
	}
}
