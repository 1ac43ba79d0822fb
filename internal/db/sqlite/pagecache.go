package sqlite

import (
	"runtime"
	"sync"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

const (
	// cachedPagesPerProcessor holds the inner pages of the trees in a store of
	// millions, for each of its readers. The system caches the others, and reading one
	// from there is faster than searching a cache that doesn't fit into the processor's.
	cachedPagesPerProcessor = 250
	// cachedPageSize is a page and what SQLite keeps beside it, at least. It is 4,368
	// bytes in the version of this writing.
	cachedPageSize = 4096 + 304
)

// sharePages gives SQLite the memory for the pages of all connections, once, and returns
// how many fit. That is none if something else in this process used SQLite before, as some
// tests do.
//
// As it is built here, SQLite has one list of all connections' pages, but counts them
// by connection. A connection below its cache_size takes new memory instead of the page
// that wasn't used for longest, and once all have more than the sum of their sizes, a
// page is forgotten right after its use. So some connections kept pages that nobody
// needed, and others none. With memory for all, they share it: when it is full, everyone
// takes the page that wasn't used for longest.
var sharePages = sync.OnceValue(func() (pages int) {
	tls := libc.NewTLS()
	defer tls.Close()
	pages = cachedPagesPerProcessor * runtime.GOMAXPROCS(0)
	memory := libc.Xmalloc(tls, types.Size_t(pages*cachedPageSize))
	args := libc.NewVaList(memory, int32(cachedPageSize), int32(pages))
	defer libc.Xfree(tls, args)
	if code := lib.Xsqlite3_config(tls, lib.SQLITE_CONFIG_PAGECACHE, args); code != lib.SQLITE_OK {
		libc.Xfree(tls, memory)
		return 0
	}
	return pages
})
