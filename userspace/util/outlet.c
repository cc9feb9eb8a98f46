// SPDX-License-Identifier: Apache-2.0
#include "util/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/units.h"

/* Writes as much as possible without waiting and returns the number of bytes. A regular file takes
 * everything. */
static size_t write_some(const struct outlet *outlet, const char *text, size_t size)
{
	ssize_t written;

	do {
		if (outlet->is_socket)
			written = send(outlet->fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
		else
			written = write(outlet->own_fd >= 0 ? outlet->own_fd : outlet->fd, text,
					size);
	} while (written < 0 && errno == EINTR);
	if (written < 0 && errno != EAGAIN)
		return size; /* the reader has gone: discard the text */
	return written < 0 ? 0 : (size_t)written;
}

static void kept_write(struct outlet *outlet)
{
	size_t done = outlet->kept_bytes ? write_some(outlet, outlet->kept, outlet->kept_bytes) : 0;

	outlet->kept_bytes -= done;
	memmove(outlet->kept, outlet->kept + done, outlet->kept_bytes);
}

/* Write function of the stream. The stream is flushed after each message, so it gets whole
 * messages. */
static ssize_t stream_write(void *cookie, const char *text, size_t size)
{
	struct outlet *outlet = cookie;
	size_t done = 0;

	kept_write(outlet);
	if (!outlet->kept_bytes)
		done = write_some(outlet, text, size);
	if (size - done > sizeof(outlet->kept) - outlet->kept_bytes) {
		outlet->dropped++;
		return (ssize_t)size;
	}
	memcpy(outlet->kept + outlet->kept_bytes, text + done, size - done);
	outlet->kept_bytes += size - done;
	return (ssize_t)size;
}

bool outlet_open(struct outlet *outlet, int fd)
{
	char path[64];
	struct stat file;

	outlet->fd = fd;
	outlet->own_fd = -1;
	outlet->kept_bytes = 0;
	outlet->dropped = 0;
	if (fstat(fd, &file))
		file.st_mode = 0;
	outlet->is_socket = S_ISSOCK(file.st_mode);
	/* O_NONBLOCK applies to the open file description, which other processes write to as well.
	 * So we open one of our own. */
	if (S_ISCHR(file.st_mode) || S_ISFIFO(file.st_mode)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		outlet->own_fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	}
	outlet->stream = fopencookie(outlet, "w", (cookie_io_functions_t){.write = stream_write});
	if (!outlet->stream) {
		outlet->stream = stderr;
		return false;
	}
	setvbuf(outlet->stream, NULL, _IOFBF, 4096);
	return true;
}

bool outlet_is_full(struct outlet *outlet)
{
	kept_write(outlet);
	return outlet->kept_bytes;
}

void outlet_close(struct outlet *outlet)
{
	size_t done = 0;

	if (outlet->stream == stderr)
		return;
	if (outlet->dropped)
		fprintf(outlet->stream, "(%u %s dropped: nobody read them)\n", outlet->dropped,
			units_plural(outlet->dropped, "message was", "messages were"));
	fclose(outlet->stream);
	while (done < outlet->kept_bytes) {
		ssize_t written = write(outlet->fd, outlet->kept + done, outlet->kept_bytes - done);

		if (written < 0 && errno != EINTR)
			break;
		done += written > 0 ? (size_t)written : 0;
	}
	if (outlet->own_fd >= 0)
		close(outlet->own_fd);
}
