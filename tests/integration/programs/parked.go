// SPDX-License-Identifier: Apache-2.0

// parked WAY: a hundred goroutines sleep again and again, and one of them may do more.
//
//	sleep	nothing else
//	lock	a goroutine waits for a file lock, which another process holds most of the time
package main

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

func locker() {
	file, err := os.Open(os.Args[2])
	if err != nil {
		panic(err)
	}
	for {
		syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
		time.Sleep(time.Millisecond)
	}
}

func main() {
	for i := 0; i < 100; i++ {
		go func() {
			for {
				time.Sleep(300 * time.Millisecond)
			}
		}()
	}
	if os.Args[1] == "lock" {
		go locker()
	}
	fmt.Println("ready")
	select {}
}
