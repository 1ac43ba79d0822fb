//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// unfinishedFiles returns the files of uploads that were not completed.
func unfinishedFiles(t *testing.T, service bucketService) (left []string) {
	t.Helper()
	err := filepath.WalkDir(service.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(path, "multipart") {
			left = append(left, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// TestBucketKills kills backups in the middle of the upload. The bucket never has a half one,
// and the next backup deletes the parts that were uploaded.
func TestBucketKills(t *testing.T) {
	testenv.OnlySoak(t, "it builds a real S3 service")
	service := startVersity(t, t.TempDir())
	database := largeStore(t, 10, 100)
	interrupted := 0
	for range 20 {
		backup := startIn(t, t.TempDir(), service.env(), binary, "db", "backup", bucketPlace, "--database", "sqlite:"+database)
		testenv.Eventually(t, "the upload begins", func() bool { return len(unfinishedFiles(t, service)) > 0 || backup.ended() })
		backup.kill()
		if len(unfinishedFiles(t, service)) > 0 {
			interrupted++
		}
	}
	if interrupted == 0 {
		t.Error("no upload was killed in the middle")
	}
	complete := backupsIn(t, service.env())
	if r := runWith(t, service.env(), "db", "backup", bucketPlace, "--database", "sqlite:"+database); r.code != 0 {
		t.Errorf("a backup after those that were killed: %+v", r)
	}
	if left := unfinishedFiles(t, service); len(left) > 0 {
		t.Errorf("left over in the bucket: %q", left)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(database), "*.upload*")); len(left) > 0 {
		t.Errorf("left over next to the store: %q", left)
	}
	all := backupsIn(t, service.env())
	if len(all) != len(complete)+1 {
		t.Errorf("got %d backups, want one more than %d", len(all), len(complete))
	}
	for _, b := range all {
		if b.Bytes != all[0].Bytes {
			t.Errorf("got %+v, want as many bytes as %+v", b, all[0])
		}
	}

	downloads := 0
	for range 20 {
		store := newDatabase(t)
		restore := startIn(t, t.TempDir(), service.env(), binary, "db", "restore", bucketPlace, "--database", "sqlite:"+store)
		testenv.Eventually(t, "the download begins", func() bool {
			left, _ := filepath.Glob(store + ".*.partial")
			return len(left) > 0 || restore.ended()
		})
		restore.kill()
		if exists(store) {
			continue // it was complete
		}
		downloads++
		if r := runWith(t, service.env(), "db", "restore", bucketPlace, "--database", "sqlite:"+store); r.code != 0 {
			t.Errorf("a restore after one that was killed: %+v", r)
		}
		if left, _ := filepath.Glob(store + "*.partial"); len(left) > 0 {
			t.Errorf("left over next to the restored store: %q", left)
		}
	}
	if downloads == 0 {
		t.Error("no download was killed in the middle")
	}
	t.Logf("%d uploads and %d downloads were killed in the middle", interrupted, downloads)
}
