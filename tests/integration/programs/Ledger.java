// SPDX-License-Identifier: Apache-2.0
/* Computes until it is killed, in methods that the JVM compiles. */
public class Ledger {
	static final long[] accounts = new long[1 << 16];

	static long post(int turn) {
		long sum = 0;

		for (int i = 0; i < accounts.length; i++) {
			sum += accounts[i] * 31 + turn ^ sum >>> 3;
			accounts[i] = sum;
		}
		return sum;
	}

	public static void main(String[] arguments) {
		long sum = 0;

		for (int i = 0; i < 2000; i++)
			sum += post(i);
		System.out.println(sum); /* by now it is compiled, unless with -Xint */
		for (int i = 0; sum != 1; i++)
			sum += post(i) << 1 & 2;
	}
}
