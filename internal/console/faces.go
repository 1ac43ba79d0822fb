package console

import (
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"

	"animalstore"

	"github.com/rivo/uniseg"
)

const (
	// tones is how many colours placeholders have. The stylesheet names them.
	tones = 8
	// maxInitial is how many code points an initial may have: more than any emoji.
	maxInitial = 12
)

// face is what a list shows next to a pet's name: its oldest photo, or a placeholder.
type face struct {
	Thumbnail string `json:"thumbnail,omitempty"` // the path; "" if it has no photo
	Initial   string `json:"initial,omitempty"`
	Tone      int    `json:"tone"`
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

// firstPhotos returns the oldest photo of each of these pets that has one, with one call. If
// they have more photos than one call lists, the pets with the newest photos have none here.
func (v *visit) firstPhotos(petIDs []int64) (map[int64]animalstore.Photo, error) {
	first := map[int64]animalstore.Photo{}
	if len(petIDs) == 0 {
		return first, nil
	}
	photos, _, err := readRows(v, matching(v.api.ListPhotos, animalstore.PhotoQuery{PetIDs: petIDs}))
	for _, p := range photos {
		if _, known := first[p.PetID]; !known {
			first[p.PetID] = p
		}
	}
	return first, err
}

// imagePath is where browsers load an image, which they cache permanently. It contains the
// time, because another store at the same address has other photos with the same ids.
func imagePath(p animalstore.Photo) string { return photoPath(p, "image") }

func thumbnailPath(p animalstore.Photo) string { return photoPath(p, "thumbnail") }

func photoPath(p animalstore.Photo, kind string) string {
	return photosPath + strconv.FormatInt(p.ID, 10) + "/" + kind + "?at=" + strconv.FormatInt(p.CreatedAt.Milli(), 10)
}
