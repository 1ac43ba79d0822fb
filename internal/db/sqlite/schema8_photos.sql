CREATE TABLE photos (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  pet_id          INTEGER NOT NULL REFERENCES pets (id), -- a pet is removed after its photos
  content_type    TEXT    NOT NULL, -- of both images
  width           INTEGER NOT NULL,
  height          INTEGER NOT NULL,
  bytes           INTEGER NOT NULL,
  thumbnail_bytes INTEGER NOT NULL,
  created_at      INTEGER NOT NULL
) STRICT;

CREATE INDEX photos_by_pet ON photos (pet_id, id);

-- The bytes of the images, so that no list of photos reads them.
CREATE TABLE photo_parts (
  photo_id INTEGER NOT NULL REFERENCES photos (id),
  kind     INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 1), -- image, thumbnail
  part     INTEGER NOT NULL, -- of 256 KiB, from 0
  data     BLOB    NOT NULL,
  PRIMARY KEY (photo_id, kind, part)
) STRICT;

-- How many bytes all images have, in one row or, at first, none.
CREATE TABLE photo_total (
  id    INTEGER PRIMARY KEY CHECK (id = 1),
  bytes INTEGER NOT NULL
) STRICT;
