package console

import (
	"errors"
	"net/http"

	"animalstore"
	"animalstore/client"
)

const (
	read  = animalstore.Read
	write = animalstore.Write
	admin = animalstore.Admin
)

// routes are all pages and actions for someone who is signed in. The API checks the
// permission again.
var routes = []route{
	{"GET /console/pets", read, (*visit).listPets},
	{"GET /console/pets/new", write, (*visit).newPet},
	{"POST /console/pets", write, (*visit).createPet},
	{"GET /console/pets/{id}", read, (*visit).showPet},
	{"POST /console/pets/{id}", write, (*visit).changePet},
	{"POST /console/pets/{id}/remove", write, (*visit).removePet},
	{"POST /console/pets/{id}/photos", write, (*visit).addPhotos},
	{"POST /console/pets/{id}/photos/{photo}/remove", write, (*visit).removePhoto},
	{"GET /console/photos/{id}/image", read, (*visit).showImage},
	{"GET /console/photos/{id}/thumbnail", read, (*visit).showThumbnail},
	{"GET /console/find", read, (*visit).suggestPets},

	{"GET /console/orders", read, (*visit).listOrders},
	{"POST /console/orders", write, (*visit).placeOrder},
	{"GET /console/orders/{id}", read, (*visit).showOrder},
	{"POST /console/orders/{id}", write, (*visit).moveOrder},

	{"GET /console/categories", read, (*visit).listCategories},
	{"POST /console/categories", write, (*visit).addCategory},
	{"GET /console/categories/{id}", read, (*visit).showCategory},
	{"POST /console/categories/{id}", write, (*visit).renameCategory},

	{"GET /console/events", read, (*visit).listEvents},
	{"GET " + streamPath, read, (*visit).streamEvents},

	{"GET /console/usage", read, (*visit).showUsage},

	{"GET /console/keys", admin, (*visit).listKeys},
	{"GET /console/keys/new", admin, (*visit).newKey},
	{"POST /console/keys", admin, (*visit).createKey},
	{"GET /console/keys/{id}", admin, (*visit).showKey},
	{"POST /console/keys/{id}", admin, (*visit).changeKey},
	{"POST /console/keys/{id}/rotate", admin, (*visit).rotateKey},
	{"POST /console/keys/{id}/unban", admin, (*visit).unbanKey},
	{"POST /console/keys/{id}/revoke", admin, (*visit).revokeKey},

	{"GET /console/webhooks", admin, (*visit).listWebhooks},
	{"POST /console/webhooks", admin, (*visit).createWebhook},
	{"GET /console/webhooks/{id}", admin, (*visit).showWebhook},
	{"POST /console/webhooks/{id}", admin, (*visit).changeWebhook},
	{"POST /console/webhooks/{id}/ping", admin, (*visit).pingWebhook},
	{"POST /console/webhooks/{id}/rotate", admin, (*visit).rotateWebhook},
	{"POST /console/webhooks/{id}/remove", admin, (*visit).removeWebhook},
	{"POST /console/webhooks/{id}/deliveries/retry-failed", admin, (*visit).retryFailed},
	{"POST /console/webhooks/{id}/deliveries/retry-since", admin, (*visit).retrySince},
	{"GET /console/webhooks/{id}/deliveries/{delivery}", admin, (*visit).showDelivery},
	{"POST /console/webhooks/{id}/deliveries/{delivery}/retry", admin, (*visit).retryDelivery},

	{"GET /console/system", admin, (*visit).showSystem},
}

const (
	streamPath = "/console/events/stream" // its responses don't end
	photosPath = "/console/photos/"       // the API limits the time of images, part by part
)

type route struct {
	pattern string
	needs   animalstore.Permissions
	serve   func(*visit) error
}

func (c *Console) addRoutes() {
	c.mux.HandleFunc("GET /console/sign-in", c.showSignIn)
	c.mux.HandleFunc("POST /console/sign-in", c.signIn)
	c.mux.HandleFunc("POST /console/sign-out", c.signOut)
	c.handle(route{"GET /console", 0, (*visit).showOverview})
	c.handle(route{"GET /console/{$}", 0, (*visit).toOverview})
	c.handle(route{"/console/", 0, (*visit).notFound})
	for _, r := range routes {
		c.handle(r)
	}
}

// visit is a request with a session.
type visit struct {
	*session
	c   *Console
	w   http.ResponseWriter
	r   *http.Request
	api *client.Client
}

func (c *Console) handle(to route) {
	c.mux.HandleFunc(to.pattern, func(w http.ResponseWriter, r *http.Request) {
		s, err := c.findSession(r)
		if err != nil {
			c.fail(w, nil, err)
			return
		}
		if s == nil {
			c.leadToSignIn(w, r)
			return
		}
		v := &visit{s, c, w, r, c.newClient(r, s.secret)}
		if tooLarge(r) {
			v.show(problem{
				Status: http.StatusRequestEntityTooLarge, Heading: "The form is too large",
				Message: "A form may have at most " + size(maxForm) + ". Nothing was changed: go back in your browser and shorten what you typed.",
			})
			return
		}
		if !s.key.Permissions.Has(to.needs) {
			// No call of the API charges this to the key.
			if c.chargeAddress(w, r) {
				v.show(problem{
					Status: http.StatusForbidden, Heading: "Not allowed",
					Message: "This needs a key with the permission " + to.needs.String() + ". Yours has " + s.key.Permissions.String() + ".",
				})
			}
			return
		}
		if err := to.serve(v); err != nil {
			c.fail(w, v, err)
		}
	})
}

// tooLarge reads the form of a request, and reports whether it is larger than maxForm.
func tooLarge(r *http.Request) bool {
	var limit *http.MaxBytesError
	return r.Method == http.MethodPost && errors.As(r.ParseForm(), &limit)
}

// takeDone returns what was just done, and forgets it.
func (v *visit) takeDone() string {
	cookie, err := v.r.Cookie(doneCookie)
	if err != nil {
		return ""
	}
	v.c.setCookie(v.w, v.r, doneCookie, "", "/console", -1)
	return doneText(cookie.Value)
}

// may reports whether the key has a permission, for templates.
func (s *session) may(needs animalstore.Permissions) bool { return s.key.Permissions.Has(needs) }

// toOverview serves GET /console/, which people type.
func (v *visit) toOverview() error { return v.goTo("/console", "") }

func (v *visit) notFound() error {
	if v.c.chargeAddress(v.w, v.r) {
		v.show(problem{Status: http.StatusNotFound, Heading: "Not found", Message: "The console has no page at this address."})
	}
	return nil
}

// doneCookie names what was done for the next page to say, once.
const doneCookie = "animalstore_done"

// goTo redirects to a page, which says what was done.
func (v *visit) goTo(path, done string) error {
	if done != "" {
		v.c.setCookie(v.w, v.r, doneCookie, done, "/console", 60)
	}
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
	return nil
}
