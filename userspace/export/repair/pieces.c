// SPDX-License-Identifier: Apache-2.0
#include "export/repair/pieces_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int pieces_begin(struct pieces *pieces, int fd, const char *path, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return error_set(err, errno, "%s: %s", path, strerror(errno));
	pieces->fd = fd;
	pieces->size = (uint64_t)st.st_size;
	return pieces_seek(pieces, 0, path, err);
}

int pieces_seek(struct pieces *pieces, uint64_t offset, const char *path, struct error *err)
{
	pieces->from = offset;
	pieces->len = 0;
	return pieces_next(pieces, path, err);
}

int pieces_next(struct pieces *pieces, const char *path, struct error *err)
{
	ssize_t got;
	size_t wanted;

	pieces->from += pieces->len;
	pieces->len = 0;
	if (pieces->from >= pieces->size)
		return 0;
	wanted = pieces->size - pieces->from < PIECE_BYTES ? (size_t)(pieces->size - pieces->from)
							   : PIECE_BYTES;
	do
		got = pread(pieces->fd, pieces->bytes, wanted, (off_t)pieces->from);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return error_set(err, errno, "%s: can't be read: %s", path, strerror(errno));
	if (!got)
		pieces->size = pieces->from; /* it has become shorter */
	pieces->len = (size_t)got;
	return 0;
}

int pieces_only_zeros(struct pieces *pieces, uint64_t offset, const char *path, bool *zeros,
		      struct error *err)
{
	int result = pieces_seek(pieces, offset, path, err);

	*zeros = true;
	while (!result && *zeros && pieces->len) {
		for (size_t i = 0; i < pieces->len && *zeros; i++)
			*zeros = !pieces->bytes[i];
		result = pieces_next(pieces, path, err);
	}
	return result;
}
