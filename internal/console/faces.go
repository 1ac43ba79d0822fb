package console

import (
	"hash/fnv"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"animalstore"
	"animalstore/client"

	"github.com/rivo/uniseg"
)

const (
	// listedPhotos is how many photos one call lists.
	listedPhotos = 100
	// photoCalls is how many calls look for the first photos of the pets in a list. A pet
	// has at most ten, so a full first call covers at least half of a page.
	photoCalls = 2
	// tones is how many colours placeholders have. The stylesheet names them.
	tones = 8
	// maxInitial is how many code points an initial may have: more than any emoji.
	maxInitial = 12
)

// face is what a list shows next to a pet's name: its oldest photo, or a placeholder.
type face struct {
	Thumbnail string // the path; "" if it has no photo
	Initial   string
	Tone      int
}

func newFace(name string, photo animalstore.Photo) face {
	if photo.ID != 0 {
		return face{Thumbnail: thumbnailPath(photo)}
	}
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return face{Initial: initial(name), Tone: int(hash.Sum32() % tones)}
}

// initial is the first letter, digit or symbol of a name, as a reader sees it: with its
// accents, and with all parts of an emoji. If a name has nothing but punctuation, it is
// the first of that.
func initial(name string) string {
	fallback := ""
	for state := -1; name != ""; {
		var cluster string
		cluster, name, _, state = uniseg.FirstGraphemeClusterInString(name, state)
		first := []rune(cluster)[0]
		switch {
		case unicode.In(first, unicode.Letter, unicode.Number, unicode.Symbol):
			return strings.ToUpper(shorten(cluster, maxInitial))
		case fallback == "" && unicode.IsPunct(first):
			fallback = shorten(cluster, maxInitial)
		}
	}
	return fallback
}

// shorten returns the first code points of a text, at most limit.
func shorten(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit])
	}
	return text
}

// firstPhotos returns the oldest photo of each of these pets that has one.
func (v *visit) firstPhotos(petIDs []int64) (map[int64]animalstore.Photo, error) {
	first, missing := map[int64]animalstore.Photo{}, slices.Clone(petIDs)
	for calls := 0; calls < photoCalls && len(missing) > 0; calls++ {
		photos, next, err := readRows("", func(options ...client.CallOption) iter.Seq2[animalstore.Photo, error] {
			return v.api.ListPhotos(v.r.Context(), client.PhotoQuery{PetIDs: missing, PageSize: listedPhotos}, options...)
		})
		if err != nil {
			return nil, err
		}
		for _, p := range photos {
			if _, known := first[p.PetID]; !known {
				first[p.PetID] = p
			}
		}
		if next == "" {
			break
		}
		missing = slices.DeleteFunc(missing, func(id int64) bool { _, known := first[id]; return known })
	}
	return first, nil
}

// imagePath is where browsers load an image, which they cache permanently. It contains the
// time, because another store at the same address has other photos with the same ids.
func imagePath(p animalstore.Photo) string { return photoPath(p, "image") }

func thumbnailPath(p animalstore.Photo) string { return photoPath(p, "thumbnail") }

func photoPath(p animalstore.Photo, kind string) string {
	return photosPath + strconv.FormatInt(p.ID, 10) + "/" + kind + "?at=" + strconv.FormatInt(p.CreatedAt.Milli(), 10)
}
