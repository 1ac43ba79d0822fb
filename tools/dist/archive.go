package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// file is a file of an archive. Directories have names that end in a slash.
type file struct {
	name    string
	mode    int64
	content []byte
}

func byName(a, b file) int { return strings.Compare(a.name, b.name) }

// readFiles reads the files in a directory that match a pattern, in order, and puts
// prefix in front of their names.
func readFiles(dir, prefix, pattern string) (files []file, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, pattern)) // sorted
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, file{prefix + filepath.Base(path), 0o644, content})
	}
	return files, nil
}

// writeArchive writes the .tar.gz or .zip for people who install by hand.
func (r *release) writeArchive(b binary) error {
	program := file{"animalstore", 0o755, b.content}
	if b.os == "windows" {
		program.name += ".exe"
	}
	files := append([]file{program, r.licenses}, r.extras...)
	for i := range files {
		files[i].name = r.name(b) + "/" + files[i].name
	}
	if b.os == "windows" {
		archive, err := zipOf(files, r.time)
		if err != nil {
			return err
		}
		return r.write(r.name(b)+".zip", archive)
	}
	archive, err := tarOf(files, r.time)
	if err != nil {
		return err
	}
	compressed, err := r.compress(archive)
	if err != nil {
		return err
	}
	return r.write(r.name(b)+".tar.gz", compressed)
}

func tarOf(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if strings.HasPrefix(f.name, dataDir) {
			header.Uid, header.Gid = imageUser, imageUser
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

func zipOf(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		entry, err := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at})
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// compress applies gzip without a name or time.
func (r *release) compress(content []byte) ([]byte, error) {
	level := gzip.DefaultCompression
	if r.fast {
		level = gzip.BestSpeed
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, level)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}
