// SPDX-License-Identifier: Apache-2.0

// loop.js WAY SEED: the event loop of node waits, or has no time.
//   pool  for a thread of libuv's pool (of one thread), which computes
//   busy  a timer's callback comes late, because another one computes

const crypto = require("crypto");
const fs = require("fs");
const {promisify} = require("util");

const ROUNDS = 6;
const ITERATIONS = 60000;
const derive = promisify(crypto.pbkdf2);
const pause = promisify(setTimeout);
const [way, seed] = [process.argv[2], Number(process.argv[3])];

const now = () => process.hrtime.bigint();
const threads = () => fs.readdirSync("/proc/self/task");
const rename = (tid, comm) => fs.writeFileSync(`/proc/self/task/${tid}/comm`, comm);
const ran = tid => BigInt(fs.readFileSync(`/proc/self/task/${tid}/schedstat`, "ascii").split(" ")[0]);

function say(i, begin, end, cause, ns, tid, comm) {
	console.log(`victim i=${i} pid=${process.pid} tid=${process.pid} begin=${begin} end=${end}`);
	console.log(`cause i=${i} cause=${cause} ns=${ns} pid=${process.pid} tid=${tid} comm=${comm} span=- object=-`);
}

// The pool starts with the first job.
async function poolThread() {
	const before = new Set(threads());
	await derive("a", "b", 1, 32, "sha512");
	return threads().find(tid => !before.has(tid));
}

async function waitForPool(i, worker) {
	const before = ran(worker);
	const begin = now();
	await derive("password", "salt", ITERATIONS + 3000 * ((seed + i) % 5), 64, "sha512");
	const end = now();
	await pause(5);
	say(i, begin, end, "user-work", ran(worker) - before, worker, "worker");
}

async function waitForLoop(i) {
	const begin = now();
	const late = pause(1);
	const before = process.cpuUsage();
	crypto.pbkdf2Sync("password", "salt", ITERATIONS + 3000 * ((seed + i) % 5), 64, "sha512");
	const {user, system} = process.cpuUsage(before);
	await late;
	say(i, begin, now(), "running", BigInt(user + system) * 1000n, process.pid, "victim");
}

async function main() {
	rename(process.pid, "victim");
	const worker = await poolThread();
	rename(worker, "worker");
	console.log(`ready pid=${process.pid}`);
	fs.readFileSync(0);
	for (let i = 0; i < ROUNDS; i++)
		await (way === "pool" ? waitForPool(i, worker) : waitForLoop(i));
}

main();
