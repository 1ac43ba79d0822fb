package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// A backup ends with a seal: the SHA-256 of everything before it, as text. Engines read
// only the pages that a file's header counts, so they ignore it. It is in the file, and
// not next to it, because a backup is copied to other machines.

const sealPrefix = "\nanimalstore backup, sha256 "

const sealSize = len(sealPrefix) + 2*sha256.Size + len("\n")

// ErrBroken means that a backup isn't the one that was made.
var ErrBroken = errors.New("the backup is damaged: its checksum or its length is wrong; restore another one")

// seal appends the seal to a complete file.
func seal(f *os.File) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	text, err := sealOf(f, size)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, size)
	return err
}

// checkSeal returns ErrBroken if a file was changed since it was sealed. sealed is false
// if it has no seal, for example because another tool made it.
func checkSeal(path string) (sealed bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	size := info.Size() - int64(sealSize)
	if size < 0 {
		return false, nil
	}
	found := make([]byte, sealSize)
	if _, err := f.ReadAt(found, size); err != nil {
		return false, err
	}
	if !bytes.HasPrefix(found, []byte(sealPrefix)) {
		return false, nil
	}
	want, err := sealOf(f, size)
	if err != nil {
		return true, err
	}
	if !bytes.Equal(found, want) {
		return true, fmt.Errorf("%s: %w", path, ErrBroken)
	}
	return true, nil
}

// sealOf returns the seal of the first size bytes of a file.
func sealOf(f *os.File, size int64) ([]byte, error) {
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(f, 0, size)); err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s%s\n", sealPrefix, hex.EncodeToString(hash.Sum(nil))), nil
}

// checkLength returns ErrBroken if a file without a seal has more than its pages: something
// was appended, or it had a seal that was cut off.
func checkLength(engine Files, path string) error {
	page, length, err := engine.Extent(path)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	rest := make([]byte, len(sealPrefix))
	n, err := f.ReadAt(rest, length)
	if err != nil && err != io.EOF {
		return err
	}
	if info.Size()%page != 0 || string(rest[:n]) == sealPrefix {
		return fmt.Errorf("%s: %w", path, ErrBroken)
	}
	return nil
}
