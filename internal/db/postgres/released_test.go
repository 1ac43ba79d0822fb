package postgres

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"testing"
)

// released are the SHA-256 hashes of the migrations, by file. Existing databases were
// created with exactly these statements, so lines are only ever added.
var released = map[string]string{
	"migrations/00001_store.sql":           "8ff2d37385169371e2f88624db4133cbbb47df6d3402b74fa4f081bc1ff26a06",
	"migrations/00002_events.sql":          "2746e8c4275eed0f6f6c9ecea77dd41ff5ece3e206b7e56cef1057f826b8fd92",
	"migrations/00003_webhooks.sql":        "07d63ad4f2581c9db3294ef28aefdce0f198e282da4c978f8e76a78ce43f4cf8",
	"migrations/00004_sessions.sql":        "9631e814b052adb73dbe33641c75ef16a089be3e129f1aa0be3b11dde2d55a10",
	"migrations/00005_keys_version.sql":    "6f56063cbe98ca24163cfb216f81494f2f0948d65cf9a8d2ce8ea8fd9344130f",
	"migrations/00006_lease_default.sql":   "6452d40844376c4a3fce3e59416e4dde9b7a4c9a59101e1150787317d1adbeeb",
	"migrations/00008_photos.sql":          "efc8d44a643eab9120e9e3e4f6505bac85711a476d8412bb2b6ba27fa13dd71e",
	"migrations/00009_photo_checksums.sql": "684f987e29ebf1b855b98588c39b96f905b9fbb1b54eadbd4412020ff4c43442",
}

func TestReleasedMigrationsStayAsTheyAre(t *testing.T) {
	files, err := fs.Glob(migrations, "migrations/*")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range files {
		found[name] = true
		content, err := migrations.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%x", sha256.Sum256(content))
		switch want, known := released[name]; {
		case !known:
			t.Errorf("%s is new: add it to released, with %q. From then on it can't change any more", name, got)
		case got != want:
			t.Errorf("%s was changed, and existing databases would not get the change: undo it, and write a new file with the next number that makes the change (got %s, want %s)", name, got, want)
		}
	}
	for name := range released {
		if !found[name] {
			t.Errorf("%s was released and is gone: an existing database would be refused as one of a newer version", name)
		}
	}
}
