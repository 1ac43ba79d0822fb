package photo

import (
	"image/color"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"
)

// used returns the memory that this process has from the system.
func used() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

// peak returns how much more memory the process has at most while f runs.
func peak(f func()) int64 {
	debug.FreeOSMemory()
	before := used()
	done, result := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for {
			most = max(most, used()-before)
			select {
			case <-done:
				result <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	return <-result
}

// TestMemory: neither the most expensive pictures that are accepted, one after the other,
// nor bad uploads take more than 320 MiB.
func TestMemory(t *testing.T) {
	testenv.Slow(t)
	const most = 320 << 20
	for _, c := range []struct {
		name, contentType string
		data              func() []byte
	}{
		{"progressive JPEG", "image/jpeg", func() []byte { return phototest.Progressive(6000, 4000, 10) }},
		{"PNG with 16 bits", "image/png", func() []byte {
			return append(phototest.PNGHeader(6000, 4000, 16, 6, 0), phototest.Zeros(4000*(6000*8+1))...)
		}},
		{"lossless WebP", "image/webp", func() []byte { return phototest.WebP(4700, 4000, color.NRGBA{1, 2, 3, 255}) }},
	} {
		data := c.data()
		took := peak(func() {
			for range 2 {
				process(t, c.contentType, data)
			}
		})
		t.Logf("%s: %d MiB", c.name, took>>20)
		if took > most {
			t.Errorf("%s: took %d MiB, want at most %d", c.name, took>>20, most>>20)
		}
	}
	uploads := phototest.Bad(100, 3)
	if took := peak(func() { checkBad(t, uploads) }); took > most {
		t.Errorf("bad uploads: took %d MiB, want at most %d", took>>20, most>>20)
	}
}
