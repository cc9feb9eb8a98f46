// SPDX-License-Identifier: Apache-2.0
#include "capture/launch_internal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void child_run(int go, int failed, char **command, const struct account *account,
		      const struct rlimit *files)
{
	sigset_t none;
	char byte;
	int code = 0;

	while (read(go, &byte, 1) < 0 && errno == EINTR)
		;
	/* If the tracer died before "go", this also closed the pipe: the command runs untraced. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	setrlimit(RLIMIT_NOFILE, files);
	if (account)
		code = account_become(account);
	if (!code) {
		execvp(command[0], command);
		code = errno;
	}
	if (write(failed, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(code == ENOENT ? 127 : 126);
}

int launch_prepare(struct launch *launch, char **command, const struct account *account,
		   const struct rlimit *files, struct error *err)
{
	int go[2], failed[2];

	*launch = (struct launch){.pid = -1, .go = -1, .failed = -1};
	if (pipe2(go, O_CLOEXEC))
		return error_set(err, errno, "pipe: %s", strerror(errno));
	if (pipe2(failed, O_CLOEXEC)) {
		close(go[0]);
		close(go[1]);
		return error_set(err, errno, "pipe: %s", strerror(errno));
	}
	launch->pid = fork();
	if (!launch->pid) {
		close(go[1]);
		close(failed[0]);
		child_run(go[0], failed[1], command, account, files);
	}
	close(go[0]);
	close(failed[1]);
	launch->go = go[1];
	launch->failed = failed[0];
	if (launch->pid < 0)
		return error_set(err, errno, "fork: %s", strerror(errno));
	return 0;
}

void launch_go(struct launch *launch)
{
	close(launch->go);
	launch->go = -1;
}

int launch_failure(struct launch *launch)
{
	int code = 0;

	if (launch->failed < 0)
		return 0;
	fcntl(launch->failed, F_SETFL, O_NONBLOCK);
	if (read(launch->failed, &code, sizeof(code)) != (ssize_t)sizeof(code))
		code = 0;
	close(launch->failed);
	launch->failed = -1;
	return code;
}

bool launch_executed(const struct launch *launch)
{
	struct pollfd failed = {.fd = launch->failed, .events = POLLIN};

	/* The exec closed the other end, and nothing was written to it. */
	return launch->failed >= 0 && poll(&failed, 1, 0) == 1 && !(failed.revents & POLLIN);
}

void launch_abort(struct launch *launch)
{
	if (launch->go >= 0) {
		kill(launch->pid, SIGKILL);
		waitpid(launch->pid, NULL, 0);
		close(launch->go);
	}
	if (launch->failed >= 0)
		close(launch->failed);
	launch->go = launch->failed = -1;
}
