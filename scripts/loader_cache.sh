#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# After make install: the loader finds libraries of $DIRECTORY in its cache, which has to be made
# anew. A user without root can't do that, and a folder may not be one that the loader searches.
PATH=$PATH:/usr/sbin:/sbin
ldconfig 2>/dev/null
if ! ldconfig -p 2>/dev/null | sed -n 's/.*libwaffle\.so\.0 .*=> //p' | xargs -r realpath |
	grep -qxF "$(realpath "$DIRECTORY/libwaffle.so.0")"; then
	echo "The loader does not search $DIRECTORY: link programs with -Wl,-rpath,$DIRECTORY, or write" \
		"the folder into /etc/ld.so.conf.d/waffle.conf and run ldconfig as root."
fi
