// SPDX-License-Identifier: Apache-2.0

//! locks WAY SEED: a thread of Rust waits.
//!   mutex  another thread computes with a Mutex locked
//!   mpsc   another thread computes, and sends into a channel

use std::io::Read;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

const ROUNDS: i64 = 6;
const MONOTONIC: i32 = 1;
const CPU_TIME: i32 = 3; // of the thread

extern "C" {
    fn clock_gettime(id: i32, time: *mut [i64; 2]) -> i32;
}

fn clock(id: i32) -> i64 {
    let mut time = [0; 2];
    unsafe { clock_gettime(id, &mut time) };
    time[0] * 1_000_000_000 + time[1]
}

fn tid() -> String {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().to_string()
}

#[inline(never)]
fn compute(ms: i64) -> i64 {
    let begin = clock(CPU_TIME);
    let mut sum = 0;
    while clock(CPU_TIME) - begin < ms * 1_000_000 {
        for i in 0..2000u64 {
            unsafe { std::ptr::write_volatile(&mut sum, i) };
        }
    }
    clock(CPU_TIME) - begin
}

struct Ends {
    asked: Sender<i64>,
    locked: Receiver<()>,
    answers: Receiver<(i64, String)>,
}

fn start(mutex: Arc<Mutex<i64>>, locks: bool) -> Ends {
    let (asked, asks) = channel();
    let (say_locked, locked) = channel();
    let (answer, answers) = channel();
    let work = move || {
        let tid = tid();
        for ms in asks {
            if locks {
                let mut value = mutex.lock().unwrap();
                say_locked.send(()).unwrap();
                *value = compute(ms);
                answer.send((*value, tid.clone())).unwrap();
            } else {
                answer.send((compute(ms), tid.clone())).unwrap();
            }
        }
    };
    thread::Builder::new().name("holder".into()).spawn(work).unwrap();
    Ends { asked, locked, answers }
}

fn victim(way: &str, seed: i64) {
    let (pid, tid) = (std::process::id(), tid());
    let mutex = Arc::new(Mutex::new(0));
    let ends = start(mutex.clone(), way == "mutex");
    for i in 0..ROUNDS {
        let ms = 80 + (seed * 7 + i * 13) % 60;
        let mut begin = clock(MONOTONIC);
        let mut got = None;
        ends.asked.send(ms).unwrap();
        if way == "mutex" {
            ends.locked.recv().unwrap();
            begin = clock(MONOTONIC);
            drop(mutex.lock().unwrap());
        } else {
            got = Some(ends.answers.recv().unwrap());
        }
        let end = clock(MONOTONIC);
        let (ran, other) = got.unwrap_or_else(|| ends.answers.recv().unwrap());
        let cause = if way == "mutex" { "lock" } else { "user-work" };
        println!("victim i={i} pid={pid} tid={tid} begin={begin} end={end}");
        println!("cause i={i} cause={cause} ns={ran} pid={pid} tid={other} comm=holder span=- object=-");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (way, seed) = (arguments[1].clone(), arguments[2].parse().unwrap());
    println!("ready pid={}", std::process::id());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    let victim = move || victim(&way, seed);
    thread::Builder::new().name("victim".into()).spawn(victim).unwrap().join().unwrap();
}
