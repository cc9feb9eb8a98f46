// SPDX-License-Identifier: Apache-2.0
/* Draws what GPUs did: the tables of `waffle-bpf gpu`, for each device of each process. */
"use strict";
(() => {
const states = ["idle", "queued", "running", "waiting", "complete"];

/* Three digits that count. */
function bytes(number) {
	for (const [unit, size] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]]) {
		if (number >= size) {
			const value = number / size;
			return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${unit}`;
		}
	}
	return `${number} B`;
}

function heading(id, text) {
	return make("h3", {id}, text);
}

/* A table of rows; `left_out` more are not on the page. */
function table(attributes, names, rows, left_out) {
	const element = make("table", attributes, ...table_of(names, rows));
	if (left_out)
		element.append(make("tfoot", {}, make("tr", {}, make("td", {class: "text faint",
			colspan: names.length}, `${count(left_out)} more; waffle-bpf gpu --json has all`))));
	return make("div", {class: "scroll"}, element);
}

/* Parts of a whole, one beside the other. parts: [class, label, ns] */
function shares(parts, whole) {
	const element = make("div", {class: "bar"});
	for (const [kind, label, ns] of parts) {
		const part = make("div", {class: kind, title: `${label} ${duration(ns)}, ${percent(ns, whole)}`});
		part.style.width = whole ? `${100 * ns / whole}%` : "0";
		element.append(part);
	}
	return element;
}

/* ---- a device ---- */

function sums(device, key, title) {
	const rows = device[key], copied = rows.length && rows[0].bytes !== undefined;
	if (!rows.length)
		return [];
	return [heading(null, title), table({"data-table": key},
		["name", "count", "total", "share", ...(copied ? ["bytes", "per s"] : ["mean", "max"])],
		rows.map((row) => make("tr", {"data-name": row.name, "data-count": row.count},
			make("td", {class: "text wide"}, named(row.name)),
			make("td", {}, count(row.count)),
			make("td", {"data-ns": row.total_ns}, duration(row.total_ns)),
			make("td", {}, percent(row.total_ns, device.window_ns)),
			...(copied ? [make("td", {"data-bytes": row.bytes}, bytes(row.bytes)),
				make("td", {}, row.bytes_per_second === undefined ? "–" :
					bytes(row.bytes_per_second))] :
				[make("td", {}, duration(Math.floor(row.total_ns / row.count))),
					make("td", {"data-ns": row.max_ns}, duration(row.max_ns))]))),
		device[`${key}_left_out`])];
}

function facts(device) {
	const delay = device.launch_delay, lines = [
		`busy ${percent(device.busy_ns, device.window_ns)} of ${duration(device.window_ns)}, ` +
		`${count(device.operations)} operations, at most ${count(device.max_concurrency)} at a time`];
	if (delay.count)
		lines.push(`from the launch to the begin: median ${duration(delay.p50_ns)}, 99 % within ` +
			`${duration(delay.p99_ns)}, at most ${duration(delay.max_ns)}; ` +
			`at most ${count(device.queue_max)} launches queued on a stream`);
	if (device.communication.busy_ns)
		lines.push(`communication ${duration(device.communication.busy_ns)}, of which ` +
			`${duration(device.communication.exposed_ns)} without another kernel beside it`);
	return lines.map((line) => make("p", {class: "numbers"}, line));
}

function idle(device) {
	const rows = Object.entries(data.idle_texts).filter(([key]) =>
		key !== "unknown_ns" || device.idle[key]);
	return [heading(null, "Idle, until the next operation began"),
		table({"data-table": "idle"}, ["", "time", "share"], rows.map(([key, text]) =>
			make("tr", {"data-name": key}, make("td", {class: "text"}, text),
				make("td", {"data-ns": device.idle[key]}, duration(device.idle[key])),
				make("td", {}, percent(device.idle[key], device.window_ns)))))];
}

function levels(device) {
	return [heading(null, "Operations at a time"), table({"data-table": "concurrency"},
		["operations", "time", "share"], device.concurrency.map((level) =>
			make("tr", {"data-name": level.operations},
				make("td", {class: "text"}, count(level.operations)),
				make("td", {"data-ns": level.ns}, duration(level.ns)),
				make("td", {}, percent(level.ns, device.window_ns)))),
		device.concurrency_left_out)];
}

function stream_row(device, stream) {
	const times = states.map((state) => [`stream-${state}`, state, stream.states[`${state}_ns`]]);
	return make("tr", {"data-name": stream.stream},
		make("td", {class: "text"}, String(stream.stream)),
		make("td", {}, count(stream.operations)), make("td", {}, count(stream.queue_max)),
		make("td", {class: "text"}, shares(times, device.window_ns)),
		...times.map(([, , ns]) => make("td", {"data-ns": ns}, percent(ns, device.window_ns))));
}

function streams(device) {
	return [heading(null, "Streams"), table({"data-table": "streams"},
		["stream", "operations", "queue", "", ...states],
		device.streams.map((stream) => stream_row(device, stream)), device.streams_left_out),
	device.streams_unused ? make("p", {class: "note"},
		`${count(device.streams_unused)} streams without operations in this time`) : null];
}

function draw_device(device, index) {
	const title = `GPU ${device.device} of process ${device.pid}`;
	at("links").append(make("a", {href: `#device-${index}`}, title), " ");
	at("devices").append(make("section", {id: `device-${index}`, "data-device": device.device},
		...[make("h2", {}, title), ...facts(device), ...sums(device, "kernels", "Kernels"),
			...sums(device, "copies", "Copies"), ...sums(device, "sets", "Sets"),
			...sums(device, "spans", "Spans that launched them"), ...idle(device),
			...levels(device), ...streams(device)].filter(Boolean)));
}

/* ---- the host ---- */

function draw_causes() {
	const rows = data.starved_causes, whole = rows.reduce((sum, row) => sum + row.ns, 0);
	if (!rows.length)
		return;
	at("host").hidden = false;
	at("links").append(make("a", {href: "#host"}, "Threads"), " ");
	at("host-note").textContent = data.explained < data.starved ?
		`Of the longest ${count(data.explained)} of ${count(data.starved)} launch-starved times, ` +
		`together ${duration(whole)}.` : "";
	at("cause-table").replaceChildren(...table_of(["", "time", "share", "what"], rows.map((row) =>
		make("tr", {"data-cause": row.cause}, make("td", {class: "text"}, data.cause_texts[row.cause]),
			make("td", {"data-ns": row.ns}, duration(row.ns)),
			make("td", {}, percent(row.ns, whole)),
			make("td", {class: "text wide"}, [row.thread, row.object].filter(Boolean).join(" ") +
				` (${row.grade})`)))));
}

function draw_path(path) {
	const whole = path.to_ns - path.from_ns;
	at("paths").append(...[data.critical_paths.length > 1 ? heading(null, `Process ${path.pid}`) : null,
		table({"data-table": "path"}, ["part", "count", "total", "share"], path.parts.map((part) =>
			make("tr", {"data-kind": part.kind, "data-name": part.name},
				make("td", {class: "text wide"}, data.piece_texts[part.kind] + named(part.name) +
					(part.span === undefined ? "" : ` in ${part.span}`)),
				make("td", {}, count(part.count)),
				make("td", {"data-ns": part.total_ns}, duration(part.total_ns)),
				make("td", {}, percent(part.total_ns, whole)))), path.parts_left_out)].filter(Boolean));
}

function draw_memory() {
	const rows = data.memory.filter((memory) => memory.allocations);
	at("memory").hidden = !rows.length;
	at("memory-table").replaceChildren(...table_of(["process", "allocations", "at most", "at the end"],
		rows.map((memory) => make("tr", {"data-name": memory.pid},
			make("td", {class: "text"}, String(memory.pid)),
			make("td", {}, count(memory.allocations)),
			make("td", {"data-bytes": memory.peak_bytes}, bytes(memory.peak_bytes)),
			make("td", {"data-bytes": memory.end_bytes}, bytes(memory.end_bytes))))));
}

at("facts").textContent = [data.command, data.hostname, `${count(data.records)} operations`]
	.filter(Boolean).join(" · ");
document.title = `${data.command || "capture"} – waffle gpu`;
draw_warnings();
data.devices.forEach(draw_device);
draw_causes();
if (data.critical_paths.length) {
	at("path").hidden = false;
	at("links").append(make("a", {href: "#path"}, "Critical path"));
	data.critical_paths.forEach(draw_path);
}
draw_memory();
document.documentElement.dataset.drawn = "all";
})();
