//go:build !linux

package transfer

// renameNew renames a file and fails if the new name exists.
func renameNew(from, to string) error { return linkNew(from, to) }

func freeSpace(string) (bytes int64, known bool) { return 0, false }
