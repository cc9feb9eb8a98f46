// SPDX-License-Identifier: Apache-2.0
/*
 * Draws the report. All names come from traced programs: they are only ever put into text nodes
 * and the attributes title and data-*, never parsed as markup.
 */
"use strict";
(() => {
const states = ["", "running", "runnable", "blocked"];

/* Time since the begin of the capture. */
const instant = (ns) => `${(ns / 1e9).toFixed(6)} s`;

/* A bar of shares; values of 0 take no room. */
function bar(values, whole) {
	const element = make("div", {class: "bar"});
	values.forEach((value, i) => {
		const part = make("div", {class: states[i + 1],
			title: `${states[i + 1]} ${duration(value)}, ${percent(value, whole)}`});
		part.style.width = whole ? `${100 * value / whole}%` : "0";
		element.append(part);
	});
	return element;
}

function legend() {
	const element = make("span", {class: "faint"});
	for (const state of states.slice(1))
		element.append(make("span", {class: `key ${state}`}), state);
	return element;
}

/* ---- head ---- */

function draw_head() {
	const capture = data.capture;
	const facts = [duration(capture.duration_ns), `${count(capture.spans)} spans`,
		`${count(capture.events)} events`, `${count(capture.threads)} threads`,
		capture.hostname, capture.kernel && `Linux ${capture.kernel} ${capture.machine}`,
		capture.cpus && `${capture.cpus} CPUs`,
		new Date(capture.real_ms).toISOString().slice(0, 19).replace("T", " ") + " UTC",
		capture.sources && `recorded: ${capture.sources}`];
	at("title").textContent = capture.command || "capture";
	document.title = `${capture.command || "capture"} – waffle report`;
	at("facts").textContent = facts.filter(Boolean).join(" · ");
	if (data.recorded_filter)
		at("facts").after(make("p", {}, `Recorded with the filter ${data.recorded_filter}`));
	if (data.filter)
		at("facts").after(make("p", {}, `Filter ${data.filter.expression}: ` +
			`${count(data.filter.spans_kept)} of ${count(data.filter.spans)} spans kept`));
	if (data.hosts)
		at("facts").after(make("ul", {id: "hosts"}, ...data.hosts.map((host) =>
			make("li", {"data-host": host.name}, `${host.name}: ${host.clock}`)),
		data.hosts_left_out ? make("li", {}, `${count(data.hosts_left_out)} more hosts`) : null));
	draw_warnings();
}

/* ---- hangs ---- */

/* Most open waits are those of idle threads. So they are folded if there is something else. */
function draw_hangs() {
	at("hangs").hidden = at("hangs-link").hidden = !data.deadlocks && !data.open_waits;
	if (data.deadlocks)
		at("hang-texts").append(make("pre", {class: "chain", "data-hangs": "deadlocks"},
			data.deadlocks));
	if (!data.open_waits)
		return;
	at("hang-texts").append(make("details", {open: data.slowest.length ? null : ""},
		make("summary", {}, data.deadlocks ? "Other waits" : "Waits"),
		make("pre", {class: "chain", "data-hangs": "open_waits"}, data.open_waits)));
}

/* ---- tables ---- */

function cause_text(cause) {
	const who = [cause.culprit, cause.span && `in ${cause.span}`, cause.object]
		.filter(Boolean).join(", ");
	return who ? `${cause.cause}: ${who}` : cause.cause;
}

const span_columns = [
	["name", "text", (row) => row.name],
	["count", "", (row) => row.count],
	["total", "", (row) => row.total_ns],
	["median", "", (row) => row.p50_ns],
	["p99", "", (row) => row.p99_ns],
	["max", "", (row) => row.max_ns],
	["blocked", "", (row) => row.sched_ns ? row.blocked_ns / row.sched_ns : -1],
];

/* What the slow spans of a name have more of than the median ones. */
function differences(row) {
	return make("div", {class: "faint"},
		`slow ones (≥ p99, ${count(row.slow_spans)}): ${duration(row.slow_ns)}, median ones ` +
		`${duration(row.median_ns)}; more in the slow ones: `,
		...row.differences.map((cause, i) => make("span", {title: cause.text,
			"data-difference": cause.cause, "data-ns": cause.ns},
			`${i ? "; " : ""}+${duration(cause.ns)} ${cause_text(cause)}`)));
}

function span_row(row) {
	const notes = [[row.unfinished, "unfinished"], [row.begun_before, "begun before"],
		[row.left, "left"],
		[row.with_loss, "with loss"]].filter(([n]) => n).map(([n, text]) => `${count(n)} ${text}`);
	const cells = [
		make("td", {class: "text name", title: row.category ? `${row.name} (${row.category})` :
			row.name}, named(row.name)),
		make("td", {}, count(row.count)),
		...[row.total_ns, row.p50_ns, row.p99_ns, row.max_ns].map((ns) =>
			make("td", {"data-ns": ns}, row.count ? duration(ns) : "–")),
		make("td", {}, row.sched_ns ? bar([row.running_ns, row.runnable_ns, row.blocked_ns],
			row.sched_ns) : "?"),
		make("td", {class: "text wide"}, ...(row.causes || []).map((cause) => make("div",
			{title: cause.text, "data-cause": cause.cause, "data-ns": cause.ns},
			`${percent(cause.ns, row.causes_ns)} ${cause_text(cause)}`)),
		row.causes && row.causes_spans < row.count ? make("div", {class: "faint"},
			`of the first ${count(row.causes_spans)} spans`) : null,
		row.differences ? differences(row) : null,
		notes.length ? make("div", {class: "faint"}, notes.join(", ")) : null),
	];
	return make("tr", {"data-name": row.name, "data-count": row.count}, ...cells);
}

function draw_spans(column, falling) {
	const value = span_columns[column][2];
	const rows = [...data.spans].sort((a, b) => {
		const x = value(a), y = value(b);
		return (x < y ? -1 : x > y ? 1 : 0) * (falling ? -1 : 1);
	});
	const head = make("tr");
	span_columns.forEach(([name, kind], i) => {
		const sort = i === column ? (falling ? "descending" : "ascending") : null;
		head.append(make("th", {class: kind, "aria-sort": sort},
			button(name === "blocked" ? "running, runnable, blocked" : name,
				() => draw_spans(i, i === column ? !falling : i > 0))));
	});
	head.append(make("th", {class: "text"},
		data.spans.some((row) => row.causes) ? "causes" : ""));
	at("span-table").replaceChildren(make("thead", {}, head),
		make("tbody", {}, ...rows.map(span_row)));
	if (data.spans_left_out)
		at("span-table").append(make("tfoot", {}, make("tr", {}, make("td", {class: "text faint",
			colspan: 8}, `${count(data.spans_left_out)} more names; the text report has them`))));
}

function draw_slowest() {
	const head = make("tr", {}, ...["name", "duration", "at", "thread", "running, runnable, blocked",
		"first cause"].map((name, i) => make("th", {class: i === 1 || i === 2 ? "" : "text"}, name)));
	const rows = data.slowest.map((slow, i) => make("tr", {"data-id": slow.id},
		make("td", {class: "text name"}, button(named(slow.name), () => choose(i), {title: slow.name})),
		make("td", {"data-ns": slow.duration_ns}, duration(slow.duration_ns)),
		make("td", {}, instant(slow.start_ns)),
		make("td", {class: "text"}, slow.thread),
		make("td", {class: "text"}, slow.running_ns === undefined ? "?" :
			bar([slow.running_ns, slow.runnable_ns, slow.blocked_ns], slow.duration_ns)),
		make("td", {class: "text wide"}, first_cause(slow))));
	at("slow-table").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
}

function first_cause(slow) {
	if (slow.causes && slow.causes.length)
		return `${percent(slow.causes[0].ns, slow.duration_ns)} ${cause_text(slow.causes[0])}`;
	return slow.wait ? `longest wait ${duration(slow.wait.duration_ns)}, ${slow.wait.text}` : "";
}

/* ---- ranks ---- */

function draw_ranks() {
	if (!data.stragglers)
		return;
	at("ranks").hidden = at("ranks-link").hidden = false;
	at("rank-table").replaceChildren(...table_of(["rank", "others waited", "of this unsure",
		"came last", "of", "it waited"], data.stragglers.map((row) => make("tr",
		{"data-rank": row.rank}, make("td", {class: "text name"}, row.rank),
		make("td", {"data-ns": row.made_wait_ns}, duration(row.made_wait_ns)),
		make("td", {}, percent(row.unsure_ns, row.made_wait_ns)),
		make("td", {}, count(row.last)), make("td", {}, count(row.calls)),
		make("td", {}, duration(row.waited_ns))))));
	if (data.stragglers_left_out)
		at("rank-table").append(make("tfoot", {}, make("tr", {}, make("td",
			{class: "text faint", colspan: 6}, `${count(data.stragglers_left_out)} more ranks`))));
	at("collective-table").replaceChildren(...table_of(["collective", "count", "ranks", "total",
		"transfer", "waiting", "most of it for"], data.collectives.map((row) => make("tr",
		{"data-name": row.name}, make("td", {class: "text name"}, named(row.name)),
		make("td", {}, count(row.count)),
		make("td", {}, row.ranks > row.ranks_traced ? `${row.ranks_traced} of ${row.ranks}` :
			count(row.ranks_traced)),
		make("td", {}, duration(row.total_ns)),
		make("td", {}, percent(row.transfer_ns, row.total_ns)),
		make("td", {}, percent(row.waiting_ns, row.total_ns)),
		make("td", {class: "text"}, row.worst || "")))));
}

/* ---- distributions ---- */

/* The shortest duration of a bin, as analyze/histogram.h numbers them. */
const bin_from = (bin) => bin < 4 ? bin : (4 + bin % 4) * 2 ** (Math.floor(bin / 4) - 1);

function chart(row) {
	/* At least two doublings wide, so that equal durations look alike. */
	const middle = row.bins[row.bins.length >> 1][0];
	const first = Math.max(Math.min(row.bins[0][0], middle - 4), 0);
	const last = Math.max(row.bins[row.bins.length - 1][0], middle + 4);
	const width = 1 / (last - first + 1);
	const top = Math.log1p(Math.max(...row.bins.map(([, n]) => n)));
	const plot = make("div", {class: "plot", role: "img", "aria-label":
		`durations of ${row.name}: median ${duration(row.p50_ns)}, p99 ${duration(row.p99_ns)}`});
	for (const [bin, n] of row.bins) {
		const column = place(make("div", {"data-bin": bin, "data-count": n,
			title: `${duration(bin_from(bin))} to ${duration(bin_from(bin + 1))}: ${count(n)}`}),
		(bin - first) * width, width * 0.92);
		column.style.height = `${100 * Math.log1p(n) / top}%`;
		plot.append(column);
	}
	for (const [name, ns] of [["median", row.p50_ns], ["p99", row.p99_ns]]) {
		const bin = row.bins.map(([b]) => b).filter((b) => bin_from(b) <= ns).pop();
		if (bin !== undefined) {
			const part = (ns - bin_from(bin)) / (bin_from(bin + 1) - bin_from(bin));
			const line = make("div", {class: "quantile", title: `${name} ${duration(ns)}`});
			line.style.left = `${100 * (bin - first + part) * width}%`;
			plot.append(line);
		}
	}
	return make("div", {class: "chart", "data-name": row.name},
		make("h3", {title: row.name}, named(row.name)), plot,
		make("div", {class: "axis"}, make("span", {}, duration(bin_from(first))),
			make("span", {}, `${count(row.count)}, median ${duration(row.p50_ns)}, ` +
				`p99 ${duration(row.p99_ns)}`),
			make("span", {}, duration(bin_from(last + 1)))));
}

function draw_charts() {
	at("charts").replaceChildren(...data.spans.filter((row) => row.bins.length).slice(0, 24)
		.map(chart));
}

/* ---- the time line of a slow span ---- */

function definition(pairs) {
	const list = make("dl");
	for (const [name, value] of pairs) {
		if (value !== undefined && value !== null && value !== "")
			list.append(make("dt", {}, name), make("dd", {}, String(value)));
	}
	return list;
}

function causes_list(slow) {
	const list = make("ol", {class: "causes"});
	for (const cause of slow.causes || []) {
		list.append(make("li", {"data-cause": cause.cause, "data-ns": cause.ns},
			`${percent(cause.ns, slow.duration_ns)} (${duration(cause.ns)}) ${cause_text(cause)} `,
			make("span", {class: "faint"}, `– ${cause.text}, ${cause.grade}`)));
	}
	return list.childElementCount ? list : null;
}

function slow_detail(slow) {
	const notes = [slow.unfinished && "unfinished", slow.begun_before && "begun before the capture",
		slow.left && "did not return: it may have been over before its end here",
		slow.loss && "records were lost while it was open"].filter(Boolean);
	const rows = [["duration", duration(slow.duration_ns)], ["begin", instant(slow.start_ns)],
		["thread", slow.thread], ["id", slow.id]];
	if (slow.running_ns !== undefined) {
		for (const state of states.slice(1)) {
			const ns = slow[`${state}_ns`];
			rows.push([state, `${duration(ns)}, ${percent(ns, slow.duration_ns)}`]);
		}
	}
	if (slow.wait)
		rows.push(["longest wait", `${duration(slow.wait.duration_ns)}, ${slow.wait.text}`]);
	for (const [name, value] of Object.entries(slow.args))
		rows.push([name, value]);
	rows.push(["note", notes.join(", ")]);
	return [make("h3", {}, named(slow.name)), definition(rows), causes_list(slow),
		slow.chain ? make("pre", {class: "chain"}, slow.chain) : null].filter(Boolean);
}

function show_detail(...children) {
	at("detail").replaceChildren(...children);
}

/* An item [row, from, to, name, id, flags] or, of many, [row, from, to, count]. */
function span_item(view, slow, item) {
	const [, from, to, what, id, flags] = item, whole = view.duration_ns;
	const many = id === undefined;
	const name = many ? `${count(what)} spans` : named(data.texts[what]);
	const text = many ? `${name} too short to draw, within ${duration(to - from)}` :
		`${name}, ${duration(to - from)}`;
	const kind = many ? "item span many" : id === slow.id ? "item span subject" : "item span";
	const element = button(name, () => id === slow.id ? show_detail(...slow_detail(slow)) :
		show_detail(make("h3", {}, name), definition([["duration", duration(to - from)],
			["begin", instant(view.from_ns + from)], ["id", id],
			["note", [flags & 2 && "unfinished", flags & 1 && "begun before the capture",
				flags & 32 && "did not return"]
				.filter(Boolean).join(", ")],
			["note", many && "each is too short to draw at this scale"]])),
	{class: kind, title: text, "data-id": id, "data-spans": many ? what : 1});
	const left = Math.max(from, 0), right = Math.min(to, whole);
	return place(element, left / whole, Math.max(right - left, 0) / whole);
}

/* [from, to, state, text] or, of many, [from, to, 0, running, runnable, blocked]. */
function state_item(view, item) {
	const [from, to, state, text] = item, whole = view.duration_ns;
	const left = Math.max(from, 0), right = Math.min(to, whole);
	const parts = item.slice(3);
	const label = state ? states[state] : "running, runnable and blocked by turns";
	const more = state ? data.texts[text] : parts.map((ns, i) =>
		`${states[i + 1]} ${duration(ns)}`).join(", ");
	const element = button("", () => show_detail(make("h3", {}, label),
		definition([["duration", duration(to - from)], ["begin", instant(view.from_ns + from)],
			[state ? "what" : "parts", more]])),
	{class: state ? `item ${states[state]}` : "item mixed", "aria-label": label,
		title: `${label} ${duration(to - from)}${more ? `, ${more}` : ""}`,
		"data-state": state, "data-ns": to - from});
	if (!state) {
		const sum = parts.reduce((a, b) => a + b, 0);
		parts.forEach((ns, i) => {
			const part = make("div", {class: states[i + 1]});
			part.style.width = `${100 * ns / sum}%`;
			element.append(part);
		});
	}
	return place(element, left / whole, Math.max(right - left, 0) / whole);
}

function axis(view) {
	const element = make("div", {class: "axis-row", "aria-hidden": "true"});
	for (let i = 0; i < 5; i++) {
		const mark = make("span", {}, i ? `+${duration(Math.round(view.duration_ns * i / 5))}` :
			instant(view.from_ns));
		mark.style.left = `${20 * i}%`;
		element.append(mark);
	}
	return element;
}

function lane(view, slow, from) {
	const element = make("div", {class: "lane", "data-thread": from.thread},
		make("div", {class: "lane-name"}, from.thread,
			from.deeper ? `, ${count(from.deeper)} spans too deep to draw` : ""));
	const depth = from.spans.reduce((most, item) => Math.max(most, item[0] + 1), 0);
	const strips = Array.from({length: depth}, () => make("div", {class: "strip"}));
	for (const item of from.spans)
		strips[item[0]].append(span_item(view, slow, item));
	element.append(...strips);
	if (from.states.length) {
		element.append(make("div", {class: "strip states"},
			...from.states.map((item) => state_item(view, item))));
	}
	return element;
}

function choose(index) {
	const slow = data.slowest[index], view = slow.view;
	const lanes = view.lanes.map((from) => lane(view, slow, from));
	for (const [from, to, n] of view.losses) {
		lanes.unshift(make("div", {class: "strip"}, place(make("div", {class: "item lost",
			title: `${count(n)} records lost`}, "lost"), from / view.duration_ns,
		(to - from) / view.duration_ns)));
	}
	at("view").replaceChildren(legend(), axis(view), ...lanes,
		make("div", {class: "detail", id: "detail", "aria-live": "polite"}));
	show_detail(...slow_detail(slow));
	[...at("slow-table").querySelectorAll("tbody tr")].forEach((row, i) =>
		row.classList.toggle("chosen", i === index));
}

/* ---- flame graphs ---- */

/* `id` is that of the element; `root` names the whole; `text` says what a node's numbers are. */
const off_cpu = {
	id: "flame", root: "all waits",
	text: (node, root) => `${duration(node.ns)}, ${percent(node.ns, root.ns)}, ` +
		`${count(node.waits)} waits`,
};
const on_cpu = {
	id: "oncpu-flame", root: "all samples",
	text: (node, root) => `${percent(node.ns, root.ns)}, ${count(node.ns)} samples`,
};

const modes = {
	"stack, then waker": (s) => [...s.frames, ["waker", s.waker]],
	"waker, then stack": (s) => [["waker", s.waker], ...s.frames],
	"thread, stack, waker": (s) => [["thread", s.thread], ...s.frames, ["waker", s.waker]],
};

function flame_stacks() {
	return data.flame.stacks.map(([thread, waker, ns, waits, user, kernel]) => ({
		thread: data.texts[thread], waker: data.texts[waker], ns, waits,
		frames: [...user.map((frame) => ["user", data.texts[frame]]),
			...kernel.map((frame) => ["kernel", data.texts[frame]])],
	}));
}

const node_of = (kind, name, parent) => ({kind, name, parent, ns: 0, waits: 0, children: new Map()});

function flame_tree(graph, stacks, path_of) {
	const root = node_of("root", graph.root, null);
	for (const stack of stacks) {
		let node = root;
		node.ns += stack.ns;
		node.waits += stack.waits;
		for (const [kind, name] of path_of(stack)) {
			const key = `${kind} ${name}`;
			if (!node.children.has(key))
				node.children.set(key, node_of(kind, name, node));
			node = node.children.get(key);
			node.ns += stack.ns;
			node.waits += stack.waits;
		}
	}
	return root;
}

/* What is narrower than this share of the graph is not drawn. */
const FLAME_LEAST = 0.0015;

function flame_rows(graph, root, zoom) {
	const rows = [];
	const add = (depth, node, left, width) => {
		while (rows.length <= depth)
			rows.push(make("div", {class: "flame-row"}));
		const text = `${node.name}: ${graph.text(node, root)}`;
		const tell = () => { at(`${graph.id}-detail`).textContent = text; };
		const element = button(node.name, () => draw_flame(graph, root, node),
			{class: `item ${node.kind}`, title: text, "data-ns": node.ns, "data-kind": node.kind});
		element.addEventListener("focus", tell);
		element.addEventListener("mouseenter", tell);
		rows[depth].append(place(element, left, width));
	};
	const path = [];
	for (let node = zoom; node; node = node.parent)
		path.unshift(node);
	path.forEach((node, depth) => add(depth, node, 0, 1));
	const walk = (node, depth, left, width) => {
		for (const child of [...node.children.values()].sort((a, b) => b.ns - a.ns)) {
			const share = width * child.ns / node.ns;
			if (share < FLAME_LEAST)
				break;
			add(depth, child, left, share);
			walk(child, depth + 1, left, share);
			left += share;
		}
	};
	walk(zoom, path.length, 0, 1);
	return rows;
}

function draw_flame(graph, root, zoom) {
	at(graph.id).replaceChildren(...flame_rows(graph, root, zoom));
}

function draw_modes(graph, stacks, paths) {
	const buttons = at(`${graph.id}-modes`);
	const draw = (mode) => {
		const root = flame_tree(graph, stacks, paths[mode]);
		[...buttons.children].forEach((element) =>
			element.setAttribute("aria-pressed", element.textContent === mode));
		draw_flame(graph, root, root);
	};
	buttons.replaceChildren(...Object.keys(paths).map((mode) => button(mode, () => draw(mode))));
	draw(Object.keys(paths)[0]);
}

const flame_help = "Click to zoom, click a row above to zoom out.";

function draw_flames() {
	const flame = data.flame, stacks = flame_stacks();
	at("flame-note").textContent = flame.blocked_ns ?
		`${duration(flame.blocked_ns)} blocked in all threads; of ` +
		`${percent(flame.stack_ns, flame.blocked_ns)} the stack is known. ` +
		(flame.left_out_ns ? `Rare stacks of ${duration(flame.left_out_ns)} are left out. ` : "") +
		flame_help :
		"No thread's waits are in this capture.";
	if (stacks.length)
		draw_modes(off_cpu, stacks, modes);
}

const oncpu_modes = {
	"span, then stack": (s) => [...s.spans, ...s.frames],
	"stack": (s) => s.frames,
	"thread, span, stack": (s) => [["thread", s.thread], ...s.spans, ...s.frames],
};

function oncpu_stacks() {
	return data.oncpu.stacks.map(([thread, samples, spans, user, kernel]) => ({
		thread: data.texts[thread], ns: samples, waits: 0,
		spans: spans.length ? spans.map((span) => ["span", data.texts[span]]) :
			[["span", "[no span]"]],
		frames: [...user.map((frame) => ["user", data.texts[frame]]),
			...kernel.map((frame) => ["kernel", data.texts[frame]])],
	}));
}

function draw_oncpu() {
	if (!data.oncpu)
		return;
	at("oncpu").hidden = at("oncpu-link").hidden = false;
	at("oncpu-flame-note").textContent = `${count(data.oncpu.samples)} samples of what threads ran. ` +
		(data.oncpu.left_out ? `Rare stacks of ${count(data.oncpu.left_out)} are left out. ` : "") +
		flame_help;
	draw_modes(on_cpu, oncpu_stacks(), oncpu_modes);
}

/* ---- symptoms ---- */

function draw_origins() {
	if (!data.symptoms.length)
		return;
	at("origins").hidden = at("origins-link").hidden = false;
	at("symptoms").replaceChildren(...data.symptoms.map((symptom) => make("div",
		{"data-id": symptom.id, "data-origins": symptom.origins.join(" ")},
		make("h3", {}, named(symptom.name)), make("pre", {class: "chain"}, symptom.story))));
}

draw_head();
draw_hangs();
draw_spans(2, true);
draw_slowest();
draw_origins();
draw_ranks();
draw_charts();
draw_flames();
draw_oncpu();
if (data.slowest.length)
	choose(0);
document.documentElement.dataset.drawn = "all";
})();
