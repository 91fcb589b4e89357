// Makes the profiles beside it: `go run main.go FOLDER`. Two functions of known shares of the processor, one of which
// does its work in the standard library; one that keeps memory, and goroutines that wait.
package main

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"time"
)

var (
	kept [][]byte
	sum  uint64
)

//go:noinline
func spins(until time.Duration) {
	for begin := time.Now(); time.Since(begin) < until; {
		for i := uint64(0); i < 1_000_000; i++ {
			sum += i * i
		}
	}
}

//go:noinline
func hashes(until time.Duration) {
	content := make([]byte, 1<<20)
	for begin := time.Now(); time.Since(begin) < until; {
		digest := sha256.Sum256(content)
		sum += uint64(digest[0])
	}
}

//go:noinline
func keeps() {
	for range 8 {
		kept = append(kept, make([]byte, 1<<20))
	}
}

//go:noinline
func waits(done chan struct{}) { <-done }

func write(folder, name, file string) {
	out, err := os.Create(filepath.Join(folder, file))
	if err != nil {
		panic(err)
	}
	defer out.Close()
	if err := pprof.Lookup(name).WriteTo(out, 0); err != nil {
		panic(err)
	}
}

func main() {
	folder := os.Args[1]
	runtime.MemProfileRate = 1 << 16
	out, err := os.Create(filepath.Join(folder, "node0.cpu.pb.gz"))
	if err != nil {
		panic(err)
	}
	runtime.GC()
	write(folder, "heap", "node0.heap.begin.pb.gz")
	if err := pprof.StartCPUProfile(out); err != nil {
		panic(err)
	}
	spins(400 * time.Millisecond)
	hashes(200 * time.Millisecond)
	pprof.StopCPUProfile()
	out.Close()
	keeps()
	done := make(chan struct{})
	for range 3 {
		go waits(done)
	}
	time.Sleep(10 * time.Millisecond)
	runtime.GC()
	write(folder, "heap", "node0.heap.pb.gz")
	write(folder, "goroutine", "node0.goroutine.pb.gz")
	write(folder, "mutex", "node0.mutex.pb.gz")
	close(done)
}
