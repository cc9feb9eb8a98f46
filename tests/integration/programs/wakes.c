// SPDX-License-Identifier: Apache-2.0
/*
 * wakes ROLE WAY PATH: processes that wake each other at a futex in shared memory, a SysV semaphore
 * or a named pipe (WAY: futex, sem, fifo), which belong to PATH.
 *
 *	worker   computes in crunch(), then wakes whoever waits at place 0
 *	parent   the same, with a child each time
 *	middle   waits at place 0, then wakes whoever waits at place 1
 *	client   waits at place 0 in await()
 *	last     waits at place 1 in await()
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum way { FUTEX, SEM, FIFO };

static enum way way;
static int *words;   /* FUTEX */
static int sem;      /* SEM: a set of two */
static int fifos[2]; /* FIFO */
static int seen[2];  /* FUTEX: the last values */

static void open_way(const char *name, const char *path)
{
	char place[4096];
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	way = !strcmp(name, "futex") ? FUTEX : !strcmp(name, "sem") ? SEM : FIFO;
	if (fd < 0 || ftruncate(fd, 4096))
		exit(1);
	words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	sem = way == SEM ? semget(ftok(path, 1), 2, IPC_CREAT | 0600) : 0;
	for (int i = 0; way == FIFO && i < 2; i++) {
		snprintf(place, sizeof(place), "%s.%d", path, i);
		mkfifo(place, 0600);
		fifos[i] = open(place, O_RDWR);
	}
	if (words == MAP_FAILED || sem < 0)
		exit(1);
}

static void wake(int place)
{
	struct sembuf up = {.sem_num = (unsigned short)place, .sem_op = 1};

	if (way == SEM)
		semop(sem, &up, 1);
	else if (way == FIFO)
		(void)!write(fifos[place], "x", 1);
	else {
		__atomic_add_fetch(&words[place], 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &words[place], FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}

__attribute__((noinline)) static void await(int place)
{
	struct sembuf down = {.sem_num = (unsigned short)place, .sem_op = -1};
	char byte;

	if (way == SEM)
		semop(sem, &down, 1);
	else if (way == FIFO)
		(void)!read(fifos[place], &byte, 1);
	else {
		while (__atomic_load_n(&words[place], __ATOMIC_SEQ_CST) == seen[place])
			syscall(SYS_futex, &words[place], FUTEX_WAIT, seen[place], NULL, NULL, 0);
		seen[place] = __atomic_load_n(&words[place], __ATOMIC_SEQ_CST);
	}
}

__attribute__((noinline)) static void crunch(void)
{
	for (volatile long i = 0; i < 20000000; i++)
		;
}

static void child(void)
{
	pid_t pid = fork();

	if (!pid) {
		usleep(1000);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	const char *role = argc == 4 ? argv[1] : "";

	if (!*role)
		return 2;
	prctl(PR_SET_NAME, role);
	open_way(argv[2], argv[3]);
	puts("ready");
	fflush(stdout);
	while (1) {
		if (!strcmp(role, "worker") || !strcmp(role, "parent")) {
			crunch();
			if (*role == 'p')
				child();
			wake(0);
		} else {
			await(!strcmp(role, "last"));
			if (!strcmp(role, "middle"))
				wake(1);
		}
	}
}
