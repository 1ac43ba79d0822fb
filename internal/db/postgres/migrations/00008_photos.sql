-- +goose Up

CREATE TABLE photos (
  id              bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- A pet is removed after its photos. Versions that don't know photos can't remove a
  -- pet that has some.
  pet_id          bigint  NOT NULL REFERENCES pets (id),
  content_type    text    NOT NULL, -- of both images
  width           bigint  NOT NULL,
  height          bigint  NOT NULL,
  bytes           bigint  NOT NULL,
  thumbnail_bytes bigint  NOT NULL,
  created_at      bigint  NOT NULL
);
CREATE INDEX photos_by_pet ON photos (pet_id, id);

-- The bytes of the images, so that no list of photos reads them.
CREATE TABLE photo_parts (
  photo_id bigint   NOT NULL REFERENCES photos (id),
  kind     smallint NOT NULL CHECK (kind BETWEEN 0 AND 1), -- image, thumbnail
  part     bigint   NOT NULL, -- of 256 KiB, from 0
  data     bytea    NOT NULL,
  PRIMARY KEY (photo_id, kind, part)
);
ALTER TABLE photo_parts ALTER COLUMN data SET STORAGE EXTERNAL; -- images are compressed already

-- How many bytes all images have, in one row or, at first, none. Every change of photos
-- locks it, as its last step: reading pictures takes far longer than that.
CREATE TABLE photo_total (
  id    bigint PRIMARY KEY CHECK (id = 1),
  bytes bigint NOT NULL
);
