// SPDX-License-Identifier: Apache-2.0
#include "export/sqlite/schema_internal.h"

const char sqlite_tables[] =
	"CREATE TABLE capture (key TEXT PRIMARY KEY, value);"
	"CREATE TABLE process (process INTEGER PRIMARY KEY, pid INT, parent_pid INT, host TEXT,"
	" command TEXT, rank INT, world_size INT, job TEXT);"
	"CREATE TABLE thread (thread INTEGER PRIMARY KEY, process INT, tid INT, comm TEXT, track TEXT,"
	" track_group TEXT, traced INT, running_ns INT, runnable_ns INT, blocked_ns INT);"
	"CREATE TABLE site (site INTEGER PRIMARY KEY, kind TEXT, name TEXT, category TEXT,"
	" severity TEXT, file TEXT, line INT, function TEXT, object TEXT);"
	"CREATE TABLE span (span INTEGER PRIMARY KEY, id INT, parent INT, parent_id INT, trace_hi INT,"
	" trace_lo INT, site INT, thread INT, end_thread INT, start_ns INT, end_ns INT,"
	" running_ns INT, runnable_ns INT, blocked_ns INT, unfinished INT, begun_before INT,"
	" left INT, loss INT);"
	"CREATE TABLE event (event INTEGER PRIMARY KEY, id INT, span INT, parent_id INT, trace_hi INT,"
	" trace_lo INT, site INT, thread INT, at_ns INT);"
	"CREATE TABLE span_value (span INT, key TEXT, value);"
	"CREATE TABLE event_value (event INT, key TEXT, value);"
	"CREATE TABLE link (from_span INT, from_event INT, to_span INT, to_event INT, to_id INT);"
	"CREATE TABLE cause (span INT, place INT, cause TEXT, grade TEXT, ns INT,"
	" stretches INT, thread INT, culprit_span INT, object TEXT);"
	"CREATE TABLE wait (thread INT, start_ns INT, end_ns INT, how TEXT, syscall TEXT,"
	" object TEXT, detail TEXT, waker INT, interrupt INT);"
	"CREATE TABLE loss (start_ns INT, end_ns INT, source TEXT, cpu INT, records INT);";

const char sqlite_indexes[] =
	"CREATE INDEX span_parent ON span (parent);"
	"CREATE INDEX span_thread ON span (thread, start_ns);"
	"CREATE INDEX event_span ON event (span);"
	"CREATE INDEX span_value_span ON span_value (span);"
	"CREATE INDEX event_value_event ON event_value (event);"
	"CREATE INDEX link_from ON link (from_span);"
	"CREATE INDEX link_to ON link (to_span);"
	"CREATE INDEX cause_span ON cause (span);"
	"CREATE INDEX wait_thread ON wait (thread, start_ns);";

#define UNIX "(SELECT value FROM capture WHERE key = 'unix_offset_ns')"
#define TIME(column) "strftime('%Y-%m-%dT%H:%M:%f', (" column " + " UNIX ") / 1e9, 'unixepoch')"

const char sqlite_views[] =
	"CREATE VIEW spans AS SELECT s.span, printf('%016x', s.id) AS id, t.name, t.category,"
	" s.start_ns, s.end_ns, s.end_ns - s.start_ns AS dur_ns, " TIME("s.start_ns") " AS time,"
	" s.running_ns, s.runnable_ns, s.blocked_ns, p.host, p.rank, p.pid, h.tid, h.comm,"
	" s.parent, s.thread, s.site, c.cause, c.ns AS cause_ns, c.grade, c.object,"
	" printf('%016x%016x', s.trace_hi, s.trace_lo) AS trace,"
	" s.unfinished, s.begun_before, s.left, s.loss"
	" FROM span s JOIN site t USING (site) LEFT JOIN thread h USING (thread)"
	" LEFT JOIN process p USING (process)"
	" LEFT JOIN cause c ON c.span = s.span AND c.place = 1;"

	"CREATE VIEW events AS SELECT e.event, printf('%016x', e.id) AS id, t.kind, t.name,"
	" t.category, t.severity, e.at_ns, " TIME("e.at_ns") " AS time, p.host, p.rank, p.pid,"
	" h.tid, h.comm, e.span, e.thread, printf('%016x%016x', e.trace_hi, e.trace_lo) AS trace"
	" FROM event e JOIN site t USING (site) LEFT JOIN thread h USING (thread)"
	" LEFT JOIN process p USING (process);"

	"CREATE VIEW links AS SELECT l.*, coalesce(fs.name, fe.name) AS effect,"
	" coalesce(fs.rank, fe.rank) AS effect_rank, coalesce(ts.name, te.name) AS cause,"
	" coalesce(ts.rank, te.rank) AS cause_rank FROM link l"
	" LEFT JOIN spans fs ON fs.span = l.from_span LEFT JOIN events fe ON fe.event = l.from_event"
	" LEFT JOIN spans ts ON ts.span = l.to_span LEFT JOIN events te ON te.event = l.to_event;"

	"CREATE VIEW waits AS SELECT w.*, w.end_ns - w.start_ns AS dur_ns, p.rank, p.pid, h.tid,"
	" h.comm, k.comm AS waker_comm FROM wait w LEFT JOIN thread h USING (thread)"
	" LEFT JOIN process p USING (process) LEFT JOIN thread k ON k.thread = w.waker;"

	"CREATE VIEW causes AS SELECT c.*, s.name, s.rank, s.comm, s.dur_ns, h.comm AS culprit,"
	" p.rank AS culprit_rank FROM cause c JOIN spans s USING (span)"
	" LEFT JOIN thread h ON h.thread = c.thread LEFT JOIN process p ON p.process = h.process;"

	"CREATE VIEW names AS SELECT name, category, count(*) AS spans, sum(dur_ns) AS total_ns,"
	" min(dur_ns) AS min_ns, avg(dur_ns) AS mean_ns, max(dur_ns) AS max_ns,"
	" sum(running_ns) AS running_ns, sum(runnable_ns) AS runnable_ns,"
	" sum(blocked_ns) AS blocked_ns FROM spans GROUP BY name, category;"

	"CREATE VIEW time_by_cause AS SELECT name, cause, sum(ns) AS ns, count(*) AS spans"
	" FROM causes GROUP BY name, cause;"

	"CREATE VIEW late_ranks AS SELECT name, rank, count(*) AS spans, avg(dur_ns) AS mean_ns,"
	" avg(dur_ns) - (SELECT avg(dur_ns) FROM spans o WHERE o.name = s.name AND o.rank IS NOT"
	" NULL) AS late_ns FROM spans s WHERE rank IS NOT NULL GROUP BY name, rank;";
