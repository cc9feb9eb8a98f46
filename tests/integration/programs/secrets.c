// SPDX-License-Identifier: Apache-2.0
/* Values that must not be in a capture: of a site's keys, of a function's arguments and result. */
#include <stdio.h>
#include <string.h>

#include <waffle_macros.h>

char *find_secret(const char *user, long number);

__attribute__((noinline)) char *find_secret(const char *user, long number)
{
	static char answer[64];

	snprintf(answer, sizeof(answer), "ANSWER-%.8s-%ld", user + 5, number % 7);
	__asm__ volatile("" ::: "memory");
	return answer;
}

int main(void)
{
	for (int i = 0; i < 20; i++) {
		SPAN("login", KV_STR("user", "USER-KRAKATAU"), KV_STR("token", "TOKEN-VESUVIUS"),
		     KV_I64("attempt", 1234500 + i));
		EVENT("denied", KV_STR("token", "TOKEN-VESUVIUS"));
		COUNTER("logins", 100 + i);
		find_secret("USER-KRAKATAU", 777000 + i);
	}
	return 0;
}
