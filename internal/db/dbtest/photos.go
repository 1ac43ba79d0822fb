package dbtest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// noLimit is a limit that no photo reaches.
const noLimit = math.MaxInt64

// newPhoto returns a photo whose image has this many bytes, different for each seed.
func newPhoto(petID int64, size int, seed byte) db.NewPhoto {
	image := make([]byte, size)
	for i := range image {
		image[i] = byte(i*i>>8) ^ seed
	}
	return db.NewPhoto{
		PetID: petID, ContentType: "image/png", Width: 1600, Height: 1200, Image: image, Thumbnail: []byte{'t', 0, seed}, At: noon,
	}
}

func mustAddPhoto(t *testing.T, d db.DB, p db.NewPhoto) animalstore.Photo {
	t.Helper()
	photo, _, err := d.AddPhoto(t.Context(), p, noLimit, nil)
	if err != nil {
		t.Fatalf("AddPhoto: %v", err)
	}
	return photo
}

func noPhotoCheck(*animalstore.Photo) error { return nil }

// wantImages fails the test unless both images of a photo read back.
func wantImages(t *testing.T, d db.DB, photo animalstore.Photo, p db.NewPhoto) {
	t.Helper()
	for kind, want := range map[db.ImageKind][]byte{db.FullImage: p.Image, db.Thumbnail: p.Thumbnail} {
		wantImage := db.Image{ContentType: p.ContentType, Bytes: int64(len(want)), CreatedAt: p.At}
		if got, err := d.Image(t.Context(), photo.ID, kind); err != nil || got != wantImage {
			t.Errorf("Image(%d, %d) = %+v, %v, want %+v", photo.ID, kind, got, err, wantImage)
		}
		var got []byte
		for part := 0; ; part++ {
			data, err := d.ImagePart(t.Context(), photo.ID, kind, part)
			if errors.Is(err, db.ErrNotFound) {
				break
			}
			if err != nil || len(data) == 0 || len(data) > db.PartSize {
				t.Fatalf("ImagePart(%d, %d, %d): %d bytes, %v", photo.ID, kind, part, len(data), err)
			}
			got = append(got, data...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("image %d of photo %d has %d bytes, want %d that are the same", kind, photo.ID, len(got), len(want))
		}
	}
}

func photoReadsBack(t *testing.T, d db.DB) {
	pet := mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 1})
	for i, size := range []int{1, db.PartSize - 1, db.PartSize, db.PartSize + 1, 3*db.PartSize + 7} {
		p := newPhoto(pet.ID, size, byte(i))
		photo := mustAddPhoto(t, d, p)
		want := animalstore.Photo{ID: photo.ID, PetID: pet.ID, ContentType: "image/png", Width: 1600, Height: 1200, Bytes: int64(size), CreatedAt: noon}
		if photo != want || photo.ID <= 0 {
			t.Errorf("AddPhoto = %+v, want %+v with a positive id", photo, want)
		}
		if got, err := d.Photo(t.Context(), photo.ID); err != nil || got != want {
			t.Errorf("Photo(%d) = %+v, %v, want %+v", photo.ID, got, err, want)
		}
		wantImages(t, d, photo, p)
	}
}

func photoListsSelect(t *testing.T, d db.DB) {
	var photos []animalstore.Photo
	pets := fill(t, d, 3)
	for i := range 12 {
		photos = append(photos, mustAddPhoto(t, d, newPhoto(pets[i%2].ID, 10, byte(i))))
	}
	for _, ids := range [][]int64{{pets[0].ID}, {pets[1].ID}, {pets[2].ID}, {pets[1].ID, pets[0].ID}, {pets[0].ID, pets[0].ID, 1 << 40}} {
		for _, after := range []int64{0, photos[0].ID, photos[5].ID, photos[11].ID} {
			for _, limit := range []int{1, 4, 100} {
				want := []animalstore.Photo{}
				for _, p := range photos {
					if slices.Contains(ids, p.PetID) && p.ID > after && len(want) < limit {
						want = append(want, p)
					}
				}
				got, err := d.Photos(t.Context(), animalstore.PhotoQuery{PetIDs: ids}, db.Page{After: after, Limit: limit})
				if err != nil || got == nil || !slices.Equal(got, want) {
					t.Errorf("Photos of %d after %d, limit %d = %+v, %v, want %+v", ids, after, limit, got, err, want)
				}
			}
		}
	}
}

func photosHaveEvents(t *testing.T, d db.DB) {
	pet := mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 1})
	log := &eventLog{d: d}
	log.next(t)
	var photos []animalstore.Photo
	for i := range 3 {
		photos = append(photos, mustAddPhoto(t, d, newPhoto(pet.ID, 10, byte(i))))
		log.want(t, "new photo", []string{subject("photo.created", photos[i].ID)}, photos[i])
	}
	refused := errors.New("refused")
	if err := d.DeletePhoto(t.Context(), photos[1].ID, func(p *animalstore.Photo) error {
		if *p != photos[1] {
			t.Errorf("check saw %+v, want %+v", *p, photos[1])
		}
		return refused
	}); !errors.Is(err, refused) {
		t.Errorf("DeletePhoto: got %v, want check's error", err)
	}
	log.want(t, "refused removal", []string{})
	if err := d.DeletePhoto(t.Context(), photos[1].ID, noPhotoCheck); err != nil {
		t.Fatal(err)
	}
	log.want(t, "removal", []string{subject("photo.deleted", photos[1].ID)}, photos[1])

	mustDeletePet(t, d, pet.ID)
	log.want(t, "removal of the pet", []string{subject("photo.deleted", photos[0].ID), subject("photo.deleted", photos[2].ID), subject("pet.deleted", pet.ID)},
		photos[0], photos[2], pet)
	for _, photo := range photos {
		_, err := d.Photo(t.Context(), photo.ID)
		wantNotFound(t, err)
		_, err = d.ImagePart(t.Context(), photo.ID, db.FullImage, 0)
		wantNotFound(t, err)
	}
	other := mustCreatePet(t, d, animalstore.NewPet{Name: "Max", CategoryID: 1})
	if next := mustAddPhoto(t, d, newPhoto(other.ID, 10, 1)); next.ID <= photos[2].ID {
		t.Errorf("a new photo has id %d, want one above %d", next.ID, photos[2].ID)
	}
}

func replaysPhotos(t *testing.T, d db.DB) {
	pet := mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 1})
	retry := &db.Idempotency{KeyID: 1, Operation: "addPhoto 1", Token: "x", At: noon}
	first, replayed, err := d.AddPhoto(t.Context(), newPhoto(pet.ID, 10, 1), noLimit, retry)
	if err != nil || replayed {
		t.Fatalf("AddPhoto: replayed %t, %v", replayed, err)
	}
	again, replayed, err := d.AddPhoto(t.Context(), newPhoto(pet.ID, 10, 1), noLimit, retry)
	if err != nil || !replayed || again != first {
		t.Errorf("AddPhoto again = %+v, %t, %v, want %+v, replayed", again, replayed, err, first)
	}
	if all, err := d.Photos(t.Context(), animalstore.PhotoQuery{PetIDs: []int64{pet.ID}}, db.Page{Limit: 10}); err != nil || len(all) != 1 {
		t.Errorf("the pet has %d photos, %v, want 1", len(all), err)
	}
}

// photosAtOnce: of many concurrent photos, a pet gets ten.
func photosAtOnce(t *testing.T, d db.DB) {
	pet := mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 1})
	var refused atomic.Int64
	together(t, animalstore.MaxPhotos+5, func(i int) error {
		_, _, err := d.AddPhoto(t.Context(), newPhoto(pet.ID, 100, byte(i)), noLimit, nil)
		if hasCode(err, animalstore.TooManyPhotos) {
			refused.Add(1)
			return nil
		}
		return err
	})
	all, err := d.Photos(t.Context(), animalstore.PhotoQuery{PetIDs: []int64{pet.ID}}, db.Page{Limit: 100})
	if err != nil || len(all) != animalstore.MaxPhotos || refused.Load() != 5 {
		t.Errorf("the pet has %d photos, %v, and %d were refused, want %d and 5", len(all), err, refused.Load(), animalstore.MaxPhotos)
	}
}

// photosLimit: all photos together never take more than the limit, however many are added
// at once, and removing some makes room for others.
func photosLimit(t *testing.T, d db.DB) {
	const photos, size = 4, 100 + 3 // with the thumbnail
	var pets []animalstore.Pet
	for i := range 10 {
		pets = append(pets, mustCreatePet(t, d, animalstore.NewPet{Name: fmt.Sprint("pet ", i), CategoryID: 1}))
	}
	add := func(i int) error {
		_, _, err := d.AddPhoto(t.Context(), newPhoto(pets[i].ID, 100, byte(i)), photos*size, nil)
		return err
	}
	var stored atomic.Int64
	together(t, len(pets), func(i int) error {
		err := add(i)
		if err == nil {
			stored.Add(1)
		} else {
			wantCode(t, err, animalstore.StorageFull)
		}
		return nil
	})
	if stored.Load() != photos {
		t.Fatalf("%d photos are stored, want %d", stored.Load(), photos)
	}
	ids := make([]int64, len(pets))
	for i, pet := range pets {
		ids[i] = pet.ID
	}
	all, err := d.Photos(t.Context(), animalstore.PhotoQuery{PetIDs: ids}, db.Page{Limit: 100})
	if err != nil || len(all) != photos {
		t.Fatalf("%d photos are listed, %v, want %d", len(all), err, photos)
	}
	if err := d.DeletePhoto(t.Context(), all[0].ID, noPhotoCheck); err != nil {
		t.Fatal(err)
	}
	mustDeletePet(t, d, all[1].PetID)
	pets = slices.DeleteFunc(pets, func(p animalstore.Pet) bool { return p.ID == all[1].PetID })
	for i, want := range []bool{true, true, false} {
		if err := add(i); (err == nil) != want {
			t.Errorf("photo %d after two were removed: got %v, want stored: %t", i, err, want)
		}
	}
}

// photosDuringRemoval: a photo that is added while its pet is removed is removed too, or
// refused.
func photosDuringRemoval(t *testing.T, d db.DB) {
	for range 10 {
		pet := mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 1})
		mustAddPhoto(t, d, newPhoto(pet.ID, 10, 1))
		together(t, 6, func(i int) error {
			var err error
			switch i {
			case 0:
				err = d.DeletePet(t.Context(), pet.ID, (*animalstore.Pet).CheckRemovable)
			case 1, 2:
				var all []animalstore.Photo
				if all, err = d.Photos(t.Context(), animalstore.PhotoQuery{PetIDs: []int64{pet.ID}}, db.Page{Limit: 1}); err == nil && len(all) > 0 {
					err = d.DeletePhoto(t.Context(), all[0].ID, noPhotoCheck)
				}
			default:
				_, _, err = d.AddPhoto(t.Context(), newPhoto(pet.ID, 10, byte(i)), noLimit, nil)
			}
			if errors.Is(err, db.ErrNotFound) {
				return nil
			}
			return err
		})
		if all, err := d.Photos(t.Context(), animalstore.PhotoQuery{PetIDs: []int64{pet.ID}}, db.Page{Limit: 10}); err != nil || len(all) != 0 {
			t.Fatalf("a removed pet has photos %+v, %v", all, err)
		}
	}
}
