/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which methods of a stack say where a program in Java is. Java's own classes, such as those of
 * locks, say little, and the code of the JVM does not say from which library a class is. So classes
 * are told apart by the first two parts of their packages: com.zaxxer.hikari.pool.HikariPool is of
 * "com.zaxxer".
 *
 *	java.util.concurrent.SynchronousQueue.poll
 *	com.zaxxer.hikari.util.ConcurrentBag.borrow       inner
 *	com.zaxxer.hikari.pool.HikariPool.getConnection
 *	com.zaxxer.hikari.HikariDataSource.getConnection  entry
 *	com.acme.Orders.load                              caller
 */
#ifndef WAFFLE_SYMBOLIZE_STACK_JAVA_H
#define WAFFLE_SYMBOLIZE_STACK_JAVA_H

#include "symbolize/stack_names.h"

/* Strings stay valid until stack_names_close(). */
struct stack_java {
	const char *inner; /* the innermost method that is not of Java's own classes */
	/* The last one, from there outwards, of classes of the same packages; NULL: nothing else
	 * called that, or it is `inner`. */
	const char *entry;
	/* The method that called `entry`, or `inner` without that; NULL: it is of the same
	 * packages, or of Java's own classes. */
	const char *caller;
};

/* False: the stack has no such method, or is none of Java. `ts`: when the stack was taken. */
bool stack_java_find(struct stack_names *names, uint32_t stack, uint64_t ts,
		     struct stack_java *java);

#endif
