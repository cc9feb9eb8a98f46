// SPDX-License-Identifier: Apache-2.0
/*
 * What the scripts of all pages use. All names come from traced programs: they are only ever put
 * into text nodes and the attributes title and data-*, never parsed as markup.
 */
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

/* ---- elements and texts ---- */

/* make("td", {class: "name", title: "…"}, "text", element, …) */
function make(tag, attributes, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes || {})) {
		if (value !== undefined && value !== null)
			element.setAttribute(name, value);
	}
	element.append(...children.filter((child) => child !== null && child !== undefined));
	return element;
}

function place(element, left, width) {
	element.style.left = `${100 * left}%`;
	element.style.width = `${100 * width}%`;
	return element;
}

function button(label, action, attributes) {
	const element = make("button", {type: "button", ...attributes}, label);
	element.addEventListener("click", action);
	return element;
}

const count = (number) => number.toLocaleString("en");
const percent = (part, whole) => whole ? `${(100 * part / whole).toFixed(1)} %` : "–";
const named = (name) => name === "" ? "(no name)" : name;

/* Three digits that count. */
function duration(ns) {
	for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) {
		if (ns >= size) {
			const value = ns / size;
			return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${unit}`;
		}
	}
	return `${ns} ns`;
}

/* ---- parts of a page ---- */

function draw_warnings() {
	for (const warning of data.warnings)
		at("warnings").append(make("li", {}, warning));
}

function table_of(names, rows) {
	return [make("thead", {}, make("tr", {}, ...names.map((name, i) =>
		make("th", {class: i ? "" : "text"}, name)))), make("tbody", {}, ...rows)];
}
