package postgres

import (
	"context"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

// AddPhoto implements [db.DB]. The lock on the pet keeps others from adding photos to it
// or removing it until the commit.
func (d *DB) AddPhoto(ctx context.Context, p db.NewPhoto, limit int64, idempotency *db.Idempotency) (photo animalstore.Photo, replayed bool, err error) {
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		replayed, err = writeOrReplay(ctx, tx, idempotency, &photo, func() error {
			if _, err := lockOne(ctx, tx, "lock pet", db.ScanPet, selectPet, p.PetID); err != nil {
				return err
			}
			count, err := selectOne(ctx, tx, "count photos", db.ScanValue[int64], "SELECT count(*) FROM photos WHERE pet_id = $1", p.PetID)
			if err != nil {
				return err
			}
			if err := db.CheckPhotoCount(count); err != nil {
				return err
			}
			var batch pgx.Batch
			if photo, err = insertPhoto(ctx, tx, &batch, &p); err != nil {
				return err
			}
			queuePetEvent(ctx, &batch, animalstore.PhotoCreated, photo.ID, photo.PetID, db.EventData(photo))
			if err := send(ctx, tx, "insert photo", &batch); err != nil {
				return err
			}
			total, err := addToTotal(ctx, tx, p.Stored())
			if err != nil {
				return err
			}
			return db.CheckPhotosTotal(total, limit)
		})
		return err
	})
	return photo, replayed, err
}

// insertPhoto adds a photo, and to the batch the statements that add its images.
func insertPhoto(ctx context.Context, tx pgx.Tx, batch *pgx.Batch, p *db.NewPhoto) (photo animalstore.Photo, err error) {
	photo = p.Photo()
	photo.ID, err = selectOne(ctx, tx, "insert photo", db.ScanValue[int64],
		"INSERT INTO photos (pet_id, content_type, width, height, bytes, thumbnail_bytes, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id",
		photo.PetID, photo.ContentType, photo.Width, photo.Height, photo.Bytes, len(p.Thumbnail), photo.CreatedAt.Milli())
	if err != nil {
		return photo, err
	}
	for _, part := range p.Parts() {
		batch.Queue("INSERT INTO photo_parts (photo_id, kind, part, data) VALUES ($1, $2, $3, $4)",
			photo.ID, int64(part.Kind), part.Number, part.Data)
	}
	return photo, nil
}

// loadPhotos adds photos without events.
func loadPhotos(ctx context.Context, tx pgx.Tx, photos []db.NewPhoto) error {
	total := int64(0)
	for i := range photos {
		var batch pgx.Batch
		if _, err := insertPhoto(ctx, tx, &batch, &photos[i]); err != nil {
			return err
		}
		if err := send(ctx, tx, "load photos", &batch); err != nil {
			return err
		}
		total += photos[i].Stored()
	}
	if total == 0 {
		return nil
	}
	_, err := addToTotal(ctx, tx, total)
	return err
}

// addToTotal changes the total of all photos and returns it. It locks the row that all
// changes of photos need, so it comes last.
func addToTotal(ctx context.Context, tx pgx.Tx, bytes int64) (total int64, err error) {
	return selectOne(ctx, tx, "update total of photos", db.ScanValue[int64],
		"INSERT INTO photo_total AS t (id, bytes) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET bytes = t.bytes + excluded.bytes RETURNING bytes", bytes)
}

const selectPhoto = "SELECT " + db.PhotoColumns + " FROM photos WHERE id = $1"

// Photo implements [db.DB].
func (d *DB) Photo(ctx context.Context, id int64) (animalstore.Photo, error) {
	return readOne(ctx, d, "select photo", db.ScanPhoto, selectPhoto, id)
}

// listPhotos reads all photos of these pets, a few each, to sort them. Without the zero,
// the planner might read photos in order of id until enough are theirs.
const listPhotos = "SELECT " + db.PhotoColumns + " FROM photos WHERE pet_id = ANY ($1) AND id > $2 ORDER BY id + 0 LIMIT $3"

// Photos implements [db.DB].
func (d *DB) Photos(ctx context.Context, q animalstore.PhotoQuery, page db.Page) ([]animalstore.Photo, error) {
	return list(ctx, d, "select photos", db.ScanPhoto, listPhotos, q.PetIDs, page.After, page.Limit)
}

// DeletePhoto implements [db.DB].
func (d *DB) DeletePhoto(ctx context.Context, id int64, check func(*animalstore.Photo) error) error {
	return d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		photo, err := lockOne(ctx, tx, "lock photo", db.ScanPhoto, selectPhoto, id)
		if err != nil {
			return err
		}
		if err := check(&photo); err != nil {
			return err
		}
		return deletePhotos(ctx, tx, []animalstore.Photo{photo})
	})
}

// deletePhotosOf removes all photos of a locked pet.
func deletePhotosOf(ctx context.Context, tx pgx.Tx, petID int64) error {
	photos, err := selectAll(ctx, tx, "lock photos", db.ScanPhoto,
		"SELECT "+db.PhotoColumns+" FROM photos WHERE pet_id = $1 ORDER BY id FOR UPDATE", petID)
	if err != nil || len(photos) == 0 {
		return err
	}
	return deletePhotos(ctx, tx, photos)
}

// deletePhotos removes locked photos and adds their events.
func deletePhotos(ctx context.Context, tx pgx.Tx, photos []animalstore.Photo) error {
	ids := make([]int64, len(photos))
	var batch pgx.Batch
	for i, photo := range photos {
		ids[i] = photo.ID
		queuePetEvent(ctx, &batch, animalstore.PhotoDeleted, photo.ID, photo.PetID, db.EventData(photo))
	}
	batch.Queue("DELETE FROM photo_parts WHERE photo_id = ANY ($1)", ids)
	if err := send(ctx, tx, "delete photos", &batch); err != nil {
		return err
	}
	bytes, err := selectOne(ctx, tx, "delete photos", db.ScanValue[int64],
		"WITH deleted AS (DELETE FROM photos WHERE id = ANY ($1) RETURNING bytes + thumbnail_bytes AS stored) SELECT sum(stored)::bigint FROM deleted", ids)
	if err != nil {
		return err
	}
	_, err = addToTotal(ctx, tx, -bytes)
	return err
}

// Image implements [db.DB].
func (d *DB) Image(ctx context.Context, id int64, kind db.ImageKind) (db.Image, error) {
	return readOne(ctx, d, "select image", db.ScanImage,
		"SELECT content_type, CASE $2::bigint WHEN 0 THEN bytes ELSE thumbnail_bytes END, created_at FROM photos WHERE id = $1", id, int64(kind))
}

// ImagePart implements [db.DB].
func (d *DB) ImagePart(ctx context.Context, id int64, kind db.ImageKind, number int) ([]byte, error) {
	return readOne(ctx, d, "select part of image", db.ScanValue[[]byte],
		"SELECT data FROM photo_parts WHERE photo_id = $1 AND kind = $2 AND part = $3", id, int64(kind), number)
}
