/* SPDX-License-Identifier: Apache-2.0 */
/* Short names for the macros of waffle.h. A macro that the program has defined already is kept. */
#ifndef WAFFLE_MACROS_H
#define WAFFLE_MACROS_H

#include "waffle.h"

#ifndef SPAN
#define SPAN(...) WAFFLE_SPAN(__VA_ARGS__)
#endif
#ifndef SPAN_BEGIN
#define SPAN_BEGIN(...) WAFFLE_BEGIN(__VA_ARGS__)
#endif
#ifndef SPAN_END
#define SPAN_END(span) WAFFLE_END(span)
#endif
#ifndef SPAN_ID
#define SPAN_ID() WAFFLE_SPAN_ID()
#endif
#ifndef EVENT
#define EVENT(...) WAFFLE_EVENT(__VA_ARGS__)
#endif
#ifndef COUNTER
#define COUNTER(name, ...) WAFFLE_COUNTER(name, __VA_ARGS__)
#endif
#ifndef INJECT
#define INJECT(...) WAFFLE_INJECT(__VA_ARGS__)
#endif
#ifndef FRAME
#define FRAME() WAFFLE_FRAME()
#endif
#ifndef MODE_SCOPE
#define MODE_SCOPE(mode) WAFFLE_MODE_SCOPE(mode)
#endif
/* <syslog.h> has a LOG_INFO of its own. */
#ifndef LOG_INFO
#define LOG_INFO(...) WAFFLE_LOG_INFO(__VA_ARGS__)
#endif
#ifndef LOG_WARN
#define LOG_WARN(...) WAFFLE_LOG_WARN(__VA_ARGS__)
#endif
#ifndef LOG_ERROR
#define LOG_ERROR(...) WAFFLE_LOG_ERROR(__VA_ARGS__)
#endif

#endif
