package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"runtime"
	"sync"
)

// The sizes in SQLite's file formats: the WAL begins with a header, then each frame has a
// header and a page. The index begins with two copies of its own header.
const (
	walHeaderSize   = 32
	frameHeaderSize = 24
	indexHeaderSize = 48
)

// walCheck compares the WAL with its index, which says how many frames the WAL has. Other
// processes may append to the WAL and restart it at any time, so only the index knows how
// long it must be. The size alone isn't enough: a write after a truncated end leaves a
// gap of zeros. So the checksum of every frame is compared once, and that of the last
// frame again the next time, because any truncation that matters changes it.
type walCheck struct {
	wal   *os.File
	index *os.File

	mu       sync.Mutex
	salt     [8]byte   // of the frames that were compared: it changes when the WAL starts over
	compared uint32    // frames before the last one
	sum      [2]uint32 // the checksum up to and including them
	page     []byte    // for a frame
}

// openWALCheck returns nil on systems other than Linux, where reading the index may not
// show what SQLite writes to its mapping of it.
func openWALCheck(path string) (*walCheck, error) {
	if runtime.GOOS != "linux" {
		return nil, nil
	}
	wal, err := os.Open(path + "-wal")
	if err != nil {
		return nil, err
	}
	index, err := os.Open(path + "-shm")
	if err != nil {
		wal.Close()
		return nil, err
	}
	return &walCheck{wal: wal, index: index}, nil
}

// close must come after all connections are closed: closing the index drops SQLite's
// locks on it.
func (c *walCheck) close() error {
	if c == nil {
		return nil
	}
	return errors.Join(c.wal.Close(), c.index.Close())
}

// errTruncatedWAL means that the WAL lacks something that its index has.
var errTruncatedWAL = errors.New("truncated or overwritten")

// check returns errTruncatedWAL if the WAL isn't complete.
func (c *walCheck) check() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		before, err := c.readIndex()
		if err != nil {
			return err
		}
		failed := c.compare(before)
		if failed == nil {
			return nil
		}
		// Another process may have started the WAL over meanwhile, and truncated it.
		// It changes the index first.
		after, err := c.readIndex()
		if err != nil {
			return err
		}
		if after == before {
			return failed
		}
	}
}

// walIndex is the header of the index.
type walIndex [indexHeaderSize]byte

func (i *walIndex) bigEndian() bool { return i[13] != 0 } // the checksums
func (i *walIndex) frames() uint32  { return binary.NativeEndian.Uint32(i[16:]) }
func (i *walIndex) salt() [8]byte   { return [8]byte(i[32:40]) }

func (i *walIndex) pageSize() int64 {
	size := int64(binary.NativeEndian.Uint16(i[14:]))
	return size&0xfe00 | size&1<<16
}

// readIndex reads the header of the index. Its two copies differ for a moment while a
// process changes it. If that process is killed, they differ until the next transaction
// writes them again; until then there is nothing to compare with.
func (c *walCheck) readIndex() (walIndex, error) {
	var copies [2 * indexHeaderSize]byte
	for range 1000 {
		if _, err := c.index.ReadAt(copies[:], 0); err != nil && !errors.Is(err, io.EOF) {
			return walIndex{}, fmt.Errorf("read the index of the WAL: %w", err)
		}
		if first, second := walIndex(copies[:indexHeaderSize]), walIndex(copies[indexHeaderSize:]); first == second {
			return first, nil
		}
		runtime.Gosched()
	}
	return walIndex{}, nil
}

// compare compares the frames that are new since the last call, and the one before them.
func (c *walCheck) compare(index walIndex) error {
	frames := index.frames()
	if frames == 0 { // everything is in the database file
		return nil
	}
	from, sum := c.compared, c.sum
	if c.salt != index.salt() || from >= frames {
		var header [walHeaderSize]byte
		if err := c.read(header[:], 0); err != nil {
			return err
		}
		if !bytes.Equal(header[16:24], index[32:40]) {
			return errTruncatedWAL
		}
		from, sum = 0, storedSum(header[24:])
	}
	size := frameHeaderSize + index.pageSize()
	if int64(len(c.page)) != size {
		c.page = make([]byte, size)
	}
	for n := from; n < frames; n++ {
		if err := c.read(c.page, walHeaderSize+int64(n)*size); err != nil {
			return err
		}
		last := sum
		sum = addSum(sum, c.page[:8], index.bigEndian())
		sum = addSum(sum, c.page[frameHeaderSize:], index.bigEndian())
		if !bytes.Equal(c.page[8:16], index[32:40]) || sum != storedSum(c.page[16:]) {
			return errTruncatedWAL
		}
		c.salt, c.compared, c.sum = index.salt(), n, last
	}
	return nil
}

// read fills b from the WAL.
func (c *walCheck) read(b []byte, at int64) error {
	_, err := c.wal.ReadAt(b, at)
	switch {
	case errors.Is(err, io.EOF):
		return errTruncatedWAL
	case err != nil:
		return fmt.Errorf("read the WAL: %w", err)
	}
	return nil
}

// storedSum reads a checksum as the WAL has it.
func storedSum(b []byte) [2]uint32 {
	return [2]uint32{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}

// addSum continues a checksum of SQLite's WAL.
func addSum(sum [2]uint32, b []byte, bigEndian bool) [2]uint32 {
	first, second := sum[0], sum[1]
	for ; len(b) >= 8; b = b[8:] {
		x, y := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		if bigEndian {
			x, y = bits.ReverseBytes32(x), bits.ReverseBytes32(y)
		}
		first += x + second
		second += y + first
	}
	return [2]uint32{first, second}
}
