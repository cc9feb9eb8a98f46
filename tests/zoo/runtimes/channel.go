// SPDX-License-Identifier: Apache-2.0

// channel WAY SEED: a goroutine of Go waits, and its thread with it.
//
//	chan	another goroutine computes on its own thread, and then sends
//	poll	another process computes, and then writes into a pipe, at which the runtime's poller waits
//	mutex	a goroutine on another thread computes with a sync.Mutex
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"unsafe"
)

const (
	rounds    = 6
	monotonic = 1
	cpuTime   = 3 // of the thread
)

func clock(id uintptr) int64 {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

// Keeps the goroutine on its thread, and names that.
func named(comm string) int {
	runtime.LockOSThread()
	tid := syscall.Gettid()
	os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", tid), []byte(comm), 0)
	return tid
}

//go:noinline
func compute(ms int64) int64 {
	begin, sum := clock(cpuTime), 0
	for clock(cpuTime)-begin < ms*1e6 {
		for i := 0; i < 2000; i++ {
			sum += i
		}
	}
	return clock(cpuTime) - begin + int64(sum&0)
}

type result struct {
	ran int64
	tid int
}

var (
	ask    = make(chan int64)
	answer = make(chan result)
	locked = make(chan bool)
	lock   sync.Mutex
)

func sender() {
	tid := named("sender")
	for ms := range ask {
		answer <- result{compute(ms), tid}
	}
}

func holder() {
	tid := named("holder")
	for ms := range ask {
		lock.Lock()
		locked <- true
		r := result{compute(ms), tid}
		lock.Unlock()
		answer <- r
	}
}

// The other process.
func peer() {
	named("peer")
	line := make([]byte, 32)
	for {
		n, err := os.Stdin.Read(line)
		if err != nil {
			return
		}
		ms, _ := strconv.ParseInt(string(line[:n]), 10, 64)
		fmt.Printf("%20d", compute(ms))
	}
}

func startPeer() (pid int, to, from *os.File) {
	in, to, _ := os.Pipe()
	from, out, _ := os.Pipe()
	process, err := os.StartProcess(os.Args[0], []string{os.Args[0], "peer", "0"}, &os.ProcAttr{Files: []*os.File{in, out, os.Stderr}})
	if err != nil {
		panic(err)
	}
	in.Close()
	out.Close()
	return process.Pid, to, from
}

func main() {
	way := os.Args[1]
	seed, _ := strconv.ParseInt(os.Args[2], 10, 64)
	if way == "peer" {
		peer()
		return
	}
	var other int
	var to, from *os.File
	tid := named("victim")
	switch way {
	case "chan":
		go sender()
	case "mutex":
		go holder()
	case "poll":
		other, to, from = startPeer()
		fmt.Printf("process role=peer pid=%d\n", other)
	}
	fmt.Printf("ready pid=%d\n", os.Getpid())
	io.ReadAll(os.Stdin)
	for i := int64(0); i < rounds; i++ {
		var r result
		ms := 80 + (seed*7+i*13)%60
		comm, cause := "sender", "user-work"
		begin := clock(monotonic)
		switch way {
		case "chan":
			ask <- ms
			r = <-answer
		case "mutex":
			comm = "holder"
			ask <- ms
			<-locked
			begin = clock(monotonic)
			lock.Lock()
			lock.Unlock()
		case "poll":
			text := make([]byte, 20)
			comm, cause = "peer", "pipe"
			fmt.Fprint(to, ms)
			io.ReadFull(from, text)
			fmt.Sscan(string(text), &r.ran)
			r.tid = other
		}
		end := clock(monotonic)
		if way == "mutex" {
			r = <-answer
		}
		fmt.Printf("victim i=%d pid=%d tid=%d begin=%d end=%d\n", i, os.Getpid(), tid, begin, end)
		fmt.Printf("cause i=%d cause=%s ns=%d pid=%d tid=%d comm=%s span=- object=-\n", i, cause, r.ran, os.Getpid(), r.tid, comm)
	}
}
