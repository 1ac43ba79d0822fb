package api

import (
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"animalstore"
)

// maxBody is the maximum size of a request body, in bytes.
const maxBody = 1 << 20

const (
	typeJSON       = "application/json"
	typeMergePatch = "application/merge-patch+json"
)

// decode reads the body with one of the functions of package strictjson.
func decode[T any](r *request, parse func([]byte) (T, error)) (T, error) {
	return decodeType(r, parse, typeJSON)
}

// decodePatch is decode for a JSON merge patch.
func decodePatch[T any](r *request, parse func([]byte) (T, error)) (T, error) {
	return decodeType(r, parse, typeJSON, typeMergePatch)
}

func decodeType[T any](r *request, parse func([]byte) (T, error), accepted ...string) (value T, err error) {
	body, err := readBody(r)
	if err != nil {
		return value, err
	}
	if err := checkMediaType(r.Header, accepted...); err != nil {
		return value, err
	}
	return parse(body)
}

// decodeOptional is decode for an operation that works without a body. Without
// one, the media type doesn't matter and the result is the zero value.
func decodeOptional[T any](r *request, parse func([]byte) (T, error)) (value T, err error) {
	body, err := readBody(r)
	if err != nil || len(body) == 0 {
		return value, err
	}
	if err := checkMediaType(r.Header, typeJSON); err != nil {
		return value, err
	}
	return parse(body)
}

func readBody(r *request) ([]byte, error) {
	if r.ContentLength > maxBody {
		return nil, tooLarge()
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, animalstore.Errorf(animalstore.MalformedJSON, "the body ended early or arrived too late: send all of it, with the length that Content-Length says")
	}
	if len(body) > maxBody {
		return nil, tooLarge()
	}
	// The http.Server limits how long reading a body may take, so our own timeout
	// only starts here.
	r.ctx.restart(handlerTimeout)
	r.body = body
	return body, nil
}

func tooLarge() error {
	return animalstore.Errorf(animalstore.PayloadTooLarge, "the body must have at most %d bytes", maxBody)
}

// checkMediaType checks that the Content-Type is absent or one of those accepted,
// and that the body isn't compressed.
func checkMediaType(h http.Header, accepted ...string) error {
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return animalstore.Errorf(animalstore.UnsupportedMediaType, "Content-Encoding is not supported: send the body as plain JSON")
	}
	types := h["Content-Type"]
	if len(types) == 0 || len(types) == 1 && types[0] == "" {
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(types[0])
	if len(types) > 1 || err != nil || !slices.Contains(accepted, mediaType) {
		return animalstore.Errorf(animalstore.UnsupportedMediaType, "the body must be JSON: send it with Content-Type: %s", strings.Join(accepted, " or "))
	}
	return nil
}
