package sqlite

import (
	"crypto/sha256"
	"fmt"
	"testing"
)

// released are the SHA-256 hashes of the migrations, by version. Stores out there were
// made with exactly these statements, so a line is only ever added.
var released = []string{
	"aac19a331169d4335ad851c953dfbaaf21d55b6d21e8e908278380df5ecc799e",
	"3014a39a3709b6ce1ae804496caadf577b291a712270d8937862423ff236c5c0",
	"e0a41b8b8fa2dd842bdea1a8c752154626c3df960a59398e68a5f9be14f29b09",
	"ac96e72a93c6eba649d1f5e39b8447a08040a851d86dde24b40dc689f3fc2d78",
	"9e7a16f5f4242d6b49f78e65997163b4da9ef4fa3508d279b8e11a1fdc524c65",
	"79a0c6e9e0b2c93766735ec1932b982dd7f238c475afa2220393e33f318d47d2",
	"2c35c45d1ce4e9db96c496733f645e81995f7f3f002f087a1dba8eae78641e4c",
	"fa8c234278764d479d477ba82d25d541bed6e79ba4f975877a00d3ad8c2b49bc",
	"cd233ee5db9027d07856804826ea1485d6b892bf8ce95a5d59919e9f9f56a42a",
}

func TestReleasedMigrationsStayAsTheyAre(t *testing.T) {
	for i, migration := range schema.Migrations {
		got := fmt.Sprintf("%x", sha256.Sum256([]byte(migration)))
		switch {
		case i >= len(released):
			t.Errorf("migration %d is new: add %q to released. From then on it can't change any more", i+1, got)
		case got != released[i]:
			t.Errorf("migration %d was changed, and existing stores would not get the change: undo it, and write a new migration that makes the change, in its own file, at the end of schema.Migrations (got %s, want %s)", i+1, got, released[i])
		}
	}
	if len(schema.Migrations) < len(released) {
		t.Errorf("there are %d migrations, but %d were released: an existing store would be refused as one of a newer version", len(schema.Migrations), len(released))
	}
}
