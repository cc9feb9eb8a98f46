// SPDX-License-Identifier: Apache-2.0

// channel WAY SEED: a goroutine of Go waits, and its thread with it.
//
//	chan	another goroutine computes on its own thread, and then sends
//	poll	another process computes, and then writes into a pipe, at which the runtime's poller waits
//	mutex	a goroutine on another thread computes with a sync.Mutex
//	tcp	goroutines share the only connection to another process, which sleeps before it answers. No
//		goroutine has a thread of its own, and a ticker wakes the runtime all the time
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
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

// Sleeps without Go's runtime, which would use its timers. Returns how long.
func sleep(ms int64) int64 {
	begin, t := clock(monotonic), syscall.NsecToTimespec(ms*1e6)
	for syscall.Nanosleep(&t, &t) != nil {
	}
	return clock(monotonic) - begin
}

// Listens at a port below those that clients get: this tells the ends of a connection apart.
func listen() net.Listener {
	for port := 20000 + os.Getpid()%10000; port < 32768; port++ {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return listener
		}
	}
	panic("no free port")
}

// The other process of tcp: says its address, then answers over one connection.
func server() {
	tid := named("server")
	listener := listen()
	fmt.Println(listener.Addr().String(), tid)
	connection, err := listener.Accept()
	line := make([]byte, 32)
	for err == nil {
		var n int
		if n, err = connection.Read(line); err == nil {
			ms, _ := strconv.ParseInt(string(line[:n]), 10, 64)
			fmt.Fprintf(connection, "%20d", sleep(ms))
		}
	}
}

type client struct {
	sync.Mutex
	connection net.Conn
	tid        int
}

func startServer() (int, *client) {
	from, out, _ := os.Pipe()
	process, err := os.StartProcess(os.Args[0], []string{os.Args[0], "server", "0"}, &os.ProcAttr{Files: []*os.File{nil, out, os.Stderr}})
	if err != nil {
		panic(err)
	}
	var address string
	of := &client{}
	fmt.Fscan(from, &address, &of.tid)
	if of.connection, err = net.Dial("tcp", address); err != nil {
		panic(err)
	}
	go func() {
		for range time.Tick(5 * time.Millisecond) {
		}
	}()
	return process.Pid, of
}

// One request at a time, over the only connection.
func (of *client) ask(ms int64) (ns int64) {
	of.Lock()
	defer of.Unlock()
	text := make([]byte, 20)
	fmt.Fprint(of.connection, ms)
	io.ReadFull(of.connection, text)
	fmt.Sscan(string(text), &ns)
	return ns
}

// How long the server slept for three goroutines.
func (of *client) askAll(ms int64) (ns int64) {
	slept := make(chan int64)
	for i := 0; i < 3; i++ {
		go func() { slept <- of.ask(ms / 3) }()
	}
	for i := 0; i < 3; i++ {
		ns += <-slept
	}
	return ns
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
	if way == "server" {
		server()
		return
	}
	var other int
	var to, from *os.File
	var shared *client
	tid := os.Getpid()
	if way != "tcp" {
		tid = named("victim")
	}
	switch way {
	case "chan":
		go sender()
	case "mutex":
		go holder()
	case "poll":
		other, to, from = startPeer()
		fmt.Printf("process role=peer pid=%d\n", other)
	case "tcp":
		other, shared = startServer()
		fmt.Printf("process role=server pid=%d\n", other)
	}
	fmt.Printf("ready pid=%d\n", os.Getpid())
	io.ReadAll(os.Stdin)
	if way == "tcp" {
		// The server's first wait is older than the capture.
		shared.askAll(3)
	}
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
		case "tcp":
			comm, cause = "server", "sleep"
			r = result{shared.askAll(3 * ms), shared.tid}
		}
		end := clock(monotonic)
		if way == "mutex" {
			r = <-answer
		}
		fmt.Printf("victim i=%d pid=%d tid=%d begin=%d end=%d\n", i, os.Getpid(), tid, begin, end)
		fmt.Printf("cause i=%d cause=%s ns=%d pid=%d tid=%d comm=%s span=- object=-\n", i, cause, r.ran, os.Getpid(), r.tid, comm)
	}
}
