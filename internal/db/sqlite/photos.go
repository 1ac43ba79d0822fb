package sqlite

import (
	"context"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// AddPhoto implements [db.DB].
func (d *DB) AddPhoto(ctx context.Context, p db.NewPhoto, limit int64, idempotency *db.Idempotency) (animalstore.Photo, bool, error) {
	by := db.OriginOf(ctx)
	added, err := resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (replayable[animalstore.Photo], error) {
		return writeOrReplay(c, idempotency, func() (photo animalstore.Photo, err error) {
			if err := checkPhotoLimits(c, &p, limit); err != nil {
				return photo, err
			}
			if photo, err = insertPhoto(c, &p); err != nil {
				return photo, err
			}
			return photo, insertPetEvent(c, by, animalstore.PhotoCreated, photo.ID, photo.PetID, db.EventData(&photo))
		})
	})
	return added.result, added.replayed, err
}

// checkPhotoLimits refuses a photo if its pet doesn't exist or has too many, or if all photos
// would take more than limit bytes.
func checkPhotoLimits(c *sqlite.Conn, p *db.NewPhoto, limit int64) error {
	if _, err := selectPet(c, p.PetID); err != nil {
		return err
	}
	count, err := selectInt(c, "count photos", "SELECT count(*) FROM photos WHERE pet_id = ?", p.PetID)
	if err != nil {
		return err
	}
	if err := db.CheckPhotoCount(count); err != nil {
		return err
	}
	total, err := selectInt(c, "select total of photos", "SELECT bytes FROM photo_total")
	if err != nil {
		return err
	}
	return db.CheckPhotosTotal(total+p.Stored(), limit)
}

// insertPhoto adds a photo and its images.
func insertPhoto(c *sqlite.Conn, p *db.NewPhoto) (photo animalstore.Photo, err error) {
	photo = p.Photo()
	err = execute(c, "insert photo", "INSERT INTO photos (pet_id, content_type, width, height, bytes, thumbnail_bytes, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
		photo.PetID, photo.ContentType, photo.Width, photo.Height, photo.Bytes, len(p.Thumbnail), photo.CreatedAt.Milli())
	if err != nil {
		return photo, err
	}
	photo.ID = c.LastInsertRowID()
	for _, part := range p.Parts() {
		err := execute(c, "insert image", "INSERT INTO photo_parts (photo_id, kind, part, data) VALUES (?, ?, ?, ?)",
			photo.ID, int64(part.Kind), part.Number, part.Data)
		if err != nil {
			return photo, err
		}
	}
	return photo, addToTotal(c, p.Stored())
}

func addToTotal(c *sqlite.Conn, bytes int64) error {
	return execute(c, "update total of photos", "INSERT INTO photo_total (id, bytes) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET bytes = bytes + excluded.bytes", bytes)
}

const selectPhoto = "SELECT " + db.PhotoColumns + " FROM photos WHERE id = ?"

// Photo implements [db.DB].
func (d *DB) Photo(ctx context.Context, id int64) (animalstore.Photo, error) {
	return readOne(ctx, d, "select photo", db.ScanPhoto, selectPhoto, id)
}

// listPhotos reads all photos of these pets, a few each, to sort them: reading photos in
// order of id until enough are theirs could read the whole table.
const listPhotos = "SELECT " + db.PhotoColumns + ` FROM photos INDEXED BY photos_by_pet
	WHERE pet_id IN (SELECT value FROM json_each(?1)) AND id > ?2 ORDER BY id LIMIT +?3`

// Photos implements [db.DB].
func (d *DB) Photos(ctx context.Context, q animalstore.PhotoQuery, page db.Page) ([]animalstore.Photo, error) {
	return list(ctx, d, "select photos", db.ScanPhoto, listPhotos, q.PetIDs, page.After, page.Limit)
}

// DeletePhoto implements [db.DB].
func (d *DB) DeletePhoto(ctx context.Context, id int64, check func(*animalstore.Photo) error) error {
	by := db.OriginOf(ctx)
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		photo, err := selectOne(c, "select photo", db.ScanPhoto, selectPhoto, id)
		if err != nil {
			return err
		}
		if err := check(&photo); err != nil {
			return err
		}
		return deletePhoto(c, by, photo)
	})
}

// deletePhotosOf removes all photos of a pet.
func deletePhotosOf(c *sqlite.Conn, by db.Origin, petID int64) error {
	photos, err := selectAll(c, "select photos", db.ScanPhoto, "SELECT "+db.PhotoColumns+" FROM photos WHERE pet_id = ? ORDER BY id", petID)
	if err != nil {
		return err
	}
	for _, photo := range photos {
		if err := deletePhoto(c, by, photo); err != nil {
			return err
		}
	}
	return nil
}

func deletePhoto(c *sqlite.Conn, by db.Origin, photo animalstore.Photo) error {
	thumbnail, err := selectInt(c, "select thumbnail", "SELECT thumbnail_bytes FROM photos WHERE id = ?", photo.ID)
	if err != nil {
		return err
	}
	for _, query := range []string{"DELETE FROM photo_parts WHERE photo_id = ?", "DELETE FROM photos WHERE id = ?"} {
		if err := execute(c, "delete photo", query, photo.ID); err != nil {
			return err
		}
	}
	if err := addToTotal(c, -photo.Bytes-thumbnail); err != nil {
		return err
	}
	return insertPetEvent(c, by, animalstore.PhotoDeleted, photo.ID, photo.PetID, db.EventData(photo))
}

// Image implements [db.DB].
func (d *DB) Image(ctx context.Context, id int64, kind db.ImageKind) (db.Image, error) {
	return readOne(ctx, d, "select image", db.ScanImage,
		"SELECT content_type, CASE ?2 WHEN 0 THEN bytes ELSE thumbnail_bytes END, created_at FROM photos WHERE id = ?1", id, int64(kind))
}

// ImagePart implements [db.DB].
func (d *DB) ImagePart(ctx context.Context, id int64, kind db.ImageKind, number int) ([]byte, error) {
	return readOne(ctx, d, "select part of image", db.ScanValue[[]byte],
		"SELECT data FROM photo_parts WHERE photo_id = ? AND kind = ? AND part = ?", id, int64(kind), number)
}
