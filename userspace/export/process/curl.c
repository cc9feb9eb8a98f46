// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/process/curl_internal.h"
#include "util/library.h"

/* OPENSSL_INIT_NO_ATEXIT of OpenSSL. */
#define NO_ATEXIT 0x00080000ull

/* The loader's lock is never wanted with the lock: a constructor of a library, which runs inside of
 * dlopen(), may ask for libcurl, too. */
static struct {
	pthread_mutex_t lock;
	bool opened;
	struct curl_library library;
} curl = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct library_function functions[] = {
#define FUNCTION(name)                                                                             \
	{                                                                                          \
		"curl_" #name, offsetof(struct curl_library, name)                                 \
	}
	FUNCTION(global_init),   FUNCTION(easy_init),    FUNCTION(easy_setopt),
	FUNCTION(easy_perform),  FUNCTION(easy_getinfo), FUNCTION(easy_cleanup),
	FUNCTION(easy_strerror), FUNCTION(slist_append), FUNCTION(slist_free_all),
#undef FUNCTION
};

/* OpenSSL would clean up before libwaffle's destructor sends the last records. */
static void openssl_keep(void *handle)
{
	int (*init)(uint64_t, const void *) =
		(int (*)(uint64_t, const void *))dlsym(handle, "OPENSSL_init_crypto");

	if (init)
		init(NO_ATEXIT, NULL);
}

/* False: it does not start. */
static bool library_start(const struct curl_library *library)
{
	bool opened;

	pthread_mutex_lock(&curl.lock);
	opened = curl.opened || !library->global_init(CURL_INIT_ALL);
	if (!curl.opened)
		curl.library = *library;
	__atomic_store_n(&curl.opened, opened, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&curl.lock);
	return opened;
}

/* Threads may do this at the same time: the loader opens the library only once. */
static int library_open(struct error *err)
{
	static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		struct curl_library library;

		if (!handle)
			continue;
		openssl_keep(handle);
		if (!library_find(handle, functions, sizeof(functions) / sizeof(functions[0]),
				  &library) &&
		    library_start(&library))
			return 0;
		dlclose(handle);
	}
	return error_set(err, ENOENT,
			 "exporters need libcurl.so.4, which can't be opened; install libcurl4");
}

const struct curl_library *curl_library_open(struct error *err)
{
	bool opened = __atomic_load_n(&curl.opened, __ATOMIC_ACQUIRE);

	return opened || !library_open(err) ? &curl.library : NULL;
}
