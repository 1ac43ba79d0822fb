package e2e

import (
	"bytes"
	be "encoding/binary"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// TestNoResponseBeforeTheDisk_Slow traces the system calls of a server under load. A 201
// response may be sent only after an fsync of the log that began when the whole
// transaction with that pet was written, including its commit mark.
func TestNoResponseBeforeTheDisk_Slow(t *testing.T) {
	t.Parallel()
	needsStrace(t)
	database := newDatabase(t)
	key := adminKey(t, database)
	trace := filepath.Join(t.TempDir(), "trace")
	s := start(t, onDatabase(database),
		withStrace(trace, "-y", "-xx", "-s", "16384", "-e", "trace=pwrite64,fsync,fdatasync,write,writev,sendto"))
	// Names are long, so that the log is checkpointed during the load.
	l := startLoad(t, s, key, 8, "traced", 4000)
	enough := int64(testenv.Count(100, 1000))
	testenv.Eventually(t, "some pets are acknowledged", func() bool { return l.acknowledged.Load() >= enough })
	acknowledged := l.stop()
	s.stop()
	s.awaitTrace(trace)

	w := walTrace{saved: map[string]*transaction{}, answered: map[string]bool{}, open: &transaction{}}
	readTrace(t, trace, w.see)
	for _, p := range acknowledged {
		name := tracedName.FindString(p.Name)
		if !w.answered[name] {
			t.Fatalf("the response for %q is not in the trace", name)
		}
	}
	if w.commits < 10 || testenv.Soak && w.begun < 2 {
		t.Error("the load is too small for this check")
	}
	if len(w.early) > 0 {
		t.Errorf("%d of %d responses went out too early, such as %s", len(w.early), len(w.answered), w.early[0])
	}
}

var tracedName = regexp.MustCompile(`traced-\d+-\d+-`)

// transaction is a transaction in the log.
type transaction struct {
	written bool // completely
	onDisk  bool
	syncing bool // an fsync began after it was written
}

// walTrace follows the write-ahead log through a trace.
type walTrace struct {
	open     *transaction            // being written
	waiting  []*transaction          // written, not yet on disk
	saved    map[string]*transaction // the first one with a pet, by name
	answered map[string]bool
	early    []string
	commits  int
	begun    int  // times the log was begun
	commit   bool // the page that comes next is the last of its transaction
}

func (w *walTrace) see(e syscallEvent) {
	log := strings.HasSuffix(e.file, "-wal")
	switch e.call {
	case "pwrite64":
		if log && e.ends {
			w.write(e)
		}
	case "fsync", "fdatasync":
		if log {
			w.sync(e)
		}
	case "write", "writev", "sendto":
		if content := e.content(); e.begins && bytes.HasPrefix(content, []byte("HTTP/1.1 201 ")) {
			w.response(tracedName.FindString(string(content)))
		}
	}
}

// write follows the format of SQLite's log: a header of 32 bytes, then for each page a
// header of 24 bytes and the page. The header of a transaction's last page contains the
// size of the database after it; in the others it is 0.
func (w *walTrace) write(e syscallEvent) {
	content := e.content()
	switch len(content) {
	case 32:
		w.begun++
	case 24:
		w.commit = be.BigEndian.Uint32(content[4:]) != 0
	default:
		for _, name := range tracedName.FindAllString(string(content), -1) {
			if w.saved[name] == nil {
				w.saved[name] = w.open
			}
		}
		if w.commit {
			w.open.written = true
			w.waiting = append(w.waiting, w.open)
			w.open, w.commit = &transaction{}, false
			w.commits++
		}
	}
}

func (w *walTrace) sync(e syscallEvent) {
	var waiting []*transaction
	for _, tx := range w.waiting {
		tx.syncing = tx.syncing || e.begins
		if tx.onDisk = tx.syncing && e.ends && e.returned == 0; !tx.onDisk {
			waiting = append(waiting, tx)
		}
	}
	w.waiting = waiting
}

func (w *walTrace) response(name string) {
	w.answered[name] = true
	switch tx := w.saved[name]; {
	case tx == nil:
		w.early = append(w.early, fmt.Sprintf("%s: nothing of it was written", name))
	case !tx.written:
		w.early = append(w.early, fmt.Sprintf("%s: its transaction was not wholly written", name))
	case !tx.onDisk:
		w.early = append(w.early, fmt.Sprintf("%s: no fsync covered it", name))
	}
}
