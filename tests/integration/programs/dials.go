// SPDX-License-Identifier: Apache-2.0
// Dials an address again and again, and gives up after 0.3 s each time.
package main

import (
	"fmt"
	"net"
	"os"
	"time"
)

func main() {
	fmt.Println("ready")
	for {
		if made, err := net.DialTimeout("tcp", os.Args[1], 300*time.Millisecond); err == nil {
			made.Close()
		}
	}
}
