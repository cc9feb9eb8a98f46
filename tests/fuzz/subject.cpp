// SPDX-License-Identifier: Apache-2.0
/*
 * The program that fuzz_call looks for calls in: few functions, of all kinds that are told apart.
 * It is small so that inputs are many, and never runs.
 */
#if defined(__x86_64__)
#define OPERAND "-4@%k[value]"
#else
#define OPERAND "-4@%w[value]"
#endif

/* The code that <sys/sdt.h> makes for a probe with one argument. */
#define PROBE(provider, name, number)                                                              \
	__asm__ volatile("990: nop\n"                                                              \
			 ".pushsection .note.stapsdt, \"\", \"note\"\n"                            \
			 ".balign 4\n"                                                             \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                        \
			 "991: .asciz \"stapsdt\"\n"                                               \
			 "992: .balign 4\n"                                                        \
			 "993: .8byte 990b, 0, 0\n"                                                \
			 ".asciz \"" provider "\"\n"                                               \
			 ".asciz \"" name "\"\n"                                                   \
			 ".asciz \"" OPERAND "\"\n"                                                \
			 "994: .balign 4\n"                                                        \
			 ".popsection\n" ::[value] "r"(number))

#define KEPT __attribute__((noinline, used))

enum kind { HTOH, HTOD = -2, DTOD = 7 };

struct place {
	unsigned x, y, z;
};

struct source {
	const char *origin, *text;
	place at;
	kind how;
	union {
		unsigned long bytes;
		void *data;
	};
	char tag[8];
	double weight;
	bool ok : 1;
	source *next;
	void (*done)(source *);
};

typedef source source_t;

extern "C" {

KEPT void describe(const char *text)
{
	PROBE("p", "a", 1);
	__asm__ volatile("" ::"r"(text) : "memory");
	PROBE("p", "b", 2);
}

KEPT int operands(const char *text, int z)
{
	PROBE("pp", "q1x", z);
	return z + *text;
}

KEPT long look(source_t *s, unsigned long n)
{
	while (n-- && s->next)
		s = s->next;
	return static_cast<long>(s->bytes);
}

/* Ends in what a pointer leads to. */
KEPT void leave(source_t *s)
{
	s->done(s);
}

/* A table of jumps. */
KEPT int choose(int which, int *out)
{
	switch (which) {
	case 0:
		return *out = 17;
	case 1:
		return operands("one", *out);
	case 2:
		describe("two");
		return 5;
	case 3:
		return which * *out;
	case 4:
		__builtin_trap();
	case 5:
		return out[which];
	default:
		return -1;
	}
}

KEPT int climb(int depth)
{
	return depth ? climb(depth - 1) + 1 : 0;
}

KEPT int (*chosen())(int)
{
	return climb;
}

int climb_best(int depth) __attribute__((ifunc("chosen")));

/* Names that a compiler gives to parts of functions, and one of Rust. */
KEPT void cold() __asm__("operands.cold");
KEPT void copy() __asm__("choose.constprop.0");
KEPT void total() __asm__("_ZN4shop4cart5total17h0123456789abcdefE");

void cold()
{
	__builtin_trap();
}

void copy()
{
	describe("copy");
}

void total()
{
	describe("total");
}

KEPT int main(int argc, char **argv)
{
	return choose(argc, nullptr) + operands(*argv, argc);
}
}

namespace ns
{
class Server
{
	int items = 0;

      public:
	KEPT int handle(int code)
	{
		return items += code;
	}
};

template <class T> KEPT T twice(T x)
{
	return x + x;
}

KEPT int run(int x)
{
	Server server;

	return server.handle(x) + twice(x);
}

KEPT double run(double x)
{
	return twice(x);
}
} // namespace ns
