package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"animalstore"
)

// routes is the whole API. A GET row serves HEAD as well, and every path has
// OPTIONS.
var routes = []route{
	{"GET", "/v1/pets", "listPets", animalstore.PetsRead, (*Server).listPets},
	{"POST", "/v1/pets", "createPet", animalstore.PetsWrite, (*Server).createPet},
	{"POST", "/v1/pets/batch", "createPetBatch", animalstore.PetsWrite, (*Server).createPetBatch},
	{"GET", "/v1/pets/{petId}", "getPet", animalstore.PetsRead, (*Server).getPet},
	{"PATCH", "/v1/pets/{petId}", "updatePet", animalstore.PetsWrite, (*Server).updatePet},
	{"DELETE", "/v1/pets/{petId}", "deletePet", animalstore.PetsWrite, (*Server).deletePet},

	{"POST", "/v1/pets/{petId}/photos", "addPhoto", animalstore.PetsWrite, (*Server).addPhoto},
	{"GET", "/v1/photos", "listPhotos", animalstore.PetsRead, (*Server).listPhotos},
	{"GET", "/v1/photos/{photoId}", "getPhoto", animalstore.PetsRead, (*Server).getPhoto},
	{"DELETE", "/v1/photos/{photoId}", "deletePhoto", animalstore.PetsWrite, (*Server).deletePhoto},
	{"GET", "/v1/photos/{photoId}/image", "getImage", animalstore.PetsRead, (*Server).getImage},
	{"GET", "/v1/photos/{photoId}/thumbnail", "getThumbnail", animalstore.PetsRead, (*Server).getThumbnail},

	{"GET", "/v1/store/orders", "listOrders", animalstore.OrdersRead, (*Server).listOrders},
	{"POST", "/v1/store/orders", "placeOrder", animalstore.OrdersWrite, (*Server).placeOrder},
	{"GET", "/v1/store/orders/{orderId}", "getOrder", animalstore.OrdersRead, (*Server).getOrder},
	{"PATCH", "/v1/store/orders/{orderId}", "updateOrder", animalstore.OrdersWrite, (*Server).updateOrder},

	{"GET", "/v1/store/inventory", "getInventory", animalstore.PetsRead, (*Server).getInventory},

	{"GET", "/v1/categories", "listCategories", animalstore.PetsRead, (*Server).listCategories},
	{"GET", "/v1/categories/{categoryId}", "getCategory", animalstore.PetsRead, (*Server).getCategory},
	{"PUT", "/v1/categories/{categoryId}", "putCategory", animalstore.PetsWrite, (*Server).putCategory},

	{"GET", "/v1/events", "listEvents", animalstore.PetsRead | animalstore.OrdersRead, (*Server).listEvents},

	{"GET", "/v1/limits", "getLimits", 0, (*Server).getLimits},
	{"GET", "/v1/usage", "getUsage", 0, (*Server).getUsage},

	{"GET", "/v1/failures", "listFailures", 0, (*Server).listFailures},

	{"GET", "/v1/status", "getStatus", animalstore.Admin, (*Server).getStatus},

	{"GET", "/v1/keys", "listKeys", animalstore.Admin, (*Server).listKeys},
	{"POST", "/v1/keys", "createKey", animalstore.Admin, (*Server).createKey},
	{"GET", "/v1/keys/{keyId}", "getKey", animalstore.Admin, (*Server).getKey},
	{"PATCH", "/v1/keys/{keyId}", "updateKey", animalstore.Admin, (*Server).updateKey},
	{"DELETE", "/v1/keys/{keyId}", "revokeKey", animalstore.Admin, (*Server).revokeKey},
	{"POST", "/v1/keys/{keyId}/rotate", "rotateKey", animalstore.Admin, (*Server).rotateKey},
	{"POST", "/v1/keys/{keyId}/unban", "unbanKey", animalstore.Admin, (*Server).unbanKey},
	{"GET", "/v1/keys/{keyId}/usage", "getKeyUsage", animalstore.Admin, (*Server).getKeyUsage},

	{"GET", "/v1/webhooks", "listWebhooks", animalstore.Admin, (*Server).listWebhooks},
	{"POST", "/v1/webhooks", "createWebhook", animalstore.Admin, (*Server).createWebhook},
	{"GET", "/v1/webhooks/{webhookId}", "getWebhook", animalstore.Admin, (*Server).getWebhook},
	{"PATCH", "/v1/webhooks/{webhookId}", "updateWebhook", animalstore.Admin, (*Server).updateWebhook},
	{"DELETE", "/v1/webhooks/{webhookId}", "deleteWebhook", animalstore.Admin, (*Server).deleteWebhook},
	{"POST", "/v1/webhooks/{webhookId}/rotate", "rotateWebhook", animalstore.Admin, (*Server).rotateWebhook},
	{"POST", "/v1/webhooks/{webhookId}/ping", "pingWebhook", animalstore.Admin, (*Server).pingWebhook},
	{"GET", "/v1/webhooks/{webhookId}/deliveries", "listDeliveries", animalstore.Admin, (*Server).listDeliveries},
	{"POST", "/v1/webhooks/{webhookId}/deliveries/retry", "retryDeliveries", animalstore.Admin, (*Server).retryDeliveries},
	{"GET", "/v1/webhooks/{webhookId}/deliveries/{deliveryId}", "getDelivery", animalstore.Admin, (*Server).getDelivery},
	{"POST", "/v1/webhooks/{webhookId}/deliveries/{deliveryId}/retry", "retryDelivery", animalstore.Admin, (*Server).retryDelivery},
}

// getPet is the only deprecated operation.
var (
	getPetDeprecated = time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)
	getPetRemoved    = time.Date(2030, 12, 5, 0, 0, 0, 0, time.UTC)
)

// route is one operation. Its path has at most two {parameters}, which are whole
// segments.
type route struct {
	method     string
	path       string
	operation  string                  // operationId in the OpenAPI document
	permission animalstore.Permissions // the key needs one of these; 0: none
	handle     func(*Server, http.ResponseWriter, *request) error
}

// PermissionOf returns what a key needs to call an operation, for
// [animalstore.Permissions.Allows]. It panics if there is no such operation.
func PermissionOf(operation string) animalstore.Permissions {
	i := slices.IndexFunc(routes, func(r route) bool { return r.operation == operation })
	return routes[i].permission
}

// MayCall returns whether a key with these permissions may call an operation.
func MayCall(p animalstore.Permissions) func(operation string) bool {
	return func(operation string) bool { return p.Allows(PermissionOf(operation)) }
}

// resource is a path with its operations.
type resource struct {
	pattern        string // of its path
	prefix, suffix string // around the parameters
	middle         string // between them, if there are two
	methods        map[string]*route
	allow          string // the value of the Allow header
}

// router finds the resource of a path. It's used instead of http.ServeMux, which
// redirects unclean paths and has its own responses for 405 and OPTIONS.
type router struct {
	exact      map[string]*resource
	parametric []*resource
}

func newRouter(routes []route) *router {
	rt := &router{exact: map[string]*resource{}}
	byPath := map[string]*resource{}
	for i := range routes {
		r := &routes[i]
		res := byPath[r.path]
		if res == nil {
			res = &resource{pattern: r.path, methods: map[string]*route{}}
			byPath[r.path] = res
			if before, after, ok := strings.Cut(r.path, "{"); ok {
				_, suffix, _ := strings.Cut(after, "}")
				if middle, last, ok := strings.Cut(suffix, "{"); ok {
					_, suffix, _ = strings.Cut(last, "}")
					res.middle = middle
				}
				res.prefix, res.suffix = before, suffix
				rt.parametric = append(rt.parametric, res)
			} else {
				rt.exact[r.path] = res
			}
		}
		res.methods[r.method] = r
		if r.method == http.MethodGet {
			res.methods[http.MethodHead] = r
		}
	}
	for _, res := range byPath {
		methods := []string{http.MethodOptions}
		for m := range res.methods {
			methods = append(methods, m)
		}
		slices.Sort(methods)
		res.allow = strings.Join(methods, ", ")
	}
	return rt
}

// find returns the resource at a path, and the values of its parameters. It
// returns nil for an unclean path, which is neither cleaned nor redirected.
func (rt *router) find(path string) (res *resource, param, second string) {
	if res := rt.exact[path]; res != nil {
		return res, "", ""
	}
	for _, res := range rt.parametric {
		rest, ok := strings.CutPrefix(path, res.prefix)
		if !ok {
			continue
		}
		param, ok := strings.CutSuffix(rest, res.suffix)
		second := ""
		if ok && res.middle != "" {
			param, second, ok = strings.Cut(param, res.middle)
			ok = ok && isSegment(second)
		}
		if ok && isSegment(param) {
			return res, param, second
		}
	}
	return nil, "", ""
}

func isSegment(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.Contains(s, "/")
}

// resource returns the resource at the path of a request, or nil, and the values of its
// parameters.
func (s *Server) resource(r *request) (res *resource, param, second string) {
	if strings.Contains(strings.ToLower(r.URL.RawPath), "%2f") { // an escaped slash doesn't separate segments
		return nil, "", ""
	}
	return s.router.find(r.URL.Path)
}

// route finds the operation of a request. A nil route with a nil error means that
// the response has already been written.
func (s *Server) route(w http.ResponseWriter, r *request) (*route, error) {
	res, param, second := s.resource(r)
	if res == nil {
		return nil, animalstore.Errorf(animalstore.RouteNotFound, "no such path: see /openapi.yaml for all paths")
	}
	r.pattern, r.param, r.second = res.pattern, param, second
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", res.allow)
		if res.methods[http.MethodPatch] != nil {
			w.Header()["Accept-Patch"] = acceptPatch
		}
		w.WriteHeader(http.StatusNoContent)
		return nil, nil
	}
	route := res.methods[r.Method]
	if route == nil {
		w.Header().Set("Allow", res.allow)
		return nil, animalstore.Errorf(animalstore.MethodNotAllowed, "this method is not allowed here: use one of %s", res.allow)
	}
	if route.operation == "getPet" {
		return route, announceRemoval(w, s.Now())
	}
	return route, nil
}

// announceRemoval sets the headers of the deprecated getPet, and returns an error once it is
// removed.
func announceRemoval(w http.ResponseWriter, now time.Time) error {
	setHeader(w, "Deprecation", "@"+strconv.FormatInt(getPetDeprecated.Unix(), 10))
	setHeader(w, "Link", `</v1/pets>; rel="successor-version", </docs/guides/callers#the-deprecated-operation>; rel="deprecation"; type="text/html"`)
	setHeader(w, "Sunset", getPetRemoved.Format(http.TimeFormat))
	if now.Before(getPetRemoved) {
		return nil
	}
	return animalstore.Errorf(animalstore.EndpointRemoved, "this operation was removed on %s: use GET /v1/pets", getPetRemoved.Format("2 January 2006"))
}
