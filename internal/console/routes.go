package console

import (
	"errors"
	"net/http"

	"animalstore"
	"animalstore/client"
)

// routes are all pages and actions for someone who is signed in. The API checks the
// permission again.
var routes = []route{
	{"GET /console/pets", petsRead, (*visit).listPets},
	{"GET /console/pets/new", petsWrite, (*visit).newPet},
	{"POST /console/pets", petsWrite, (*visit).createPet},
	{"GET /console/pets/import", petsWrite, (*visit).showImport},
	{"POST /console/pets/import/check", petsWrite, (*visit).checkImport},
	{"POST /console/pets/import/add", petsWrite, (*visit).addImport},
	{"GET /console/pets/export", petsRead, (*visit).exportPets},
	{"POST /console/pets/marked", petsWrite, petMarking.ask},
	{"POST /console/pets/marked/change", petsWrite, petMarking.apply},
	{"GET /console/pets/{id}", petsRead, (*visit).showPet},
	{"GET /console/pets/{id}/edit", petsWrite, (*visit).editPet},
	{"POST /console/pets/{id}", petsWrite, (*visit).changePet},
	{"POST /console/pets/{id}/remove", petsWrite, (*visit).removePet},
	{"POST /console/pets/{id}/photos", petsWrite, (*visit).addPhotos},
	{"POST /console/pets/{id}/photos/{photo}/remove", petsWrite, (*visit).removePhoto},
	{"GET /console/photos/{id}/image", petsRead, (*visit).showImage},
	{"GET /console/photos/{id}/thumbnail", petsRead, (*visit).showThumbnail},
	{"GET /console/find", petsRead, (*visit).suggestPets},

	{"GET /console/orders", ordersRead, (*visit).listOrders},
	{"POST /console/orders", ordersWrite, (*visit).placeOrder},
	{"POST /console/orders/marked", ordersWrite, orderMarking.ask},
	{"POST /console/orders/marked/change", ordersWrite, orderMarking.apply},
	{"GET /console/orders/{id}", ordersRead, (*visit).showOrder},
	{"POST /console/orders/{id}", ordersWrite, (*visit).moveOrder},
	{"POST /console/orders/{id}/texts", ordersWrite, (*visit).changeTexts},

	{"GET /console/categories", petsRead, (*visit).listCategories},
	{"POST /console/categories", petsWrite, (*visit).addCategory},
	{"GET /console/categories/{id}", petsRead, (*visit).showCategory},
	{"POST /console/categories/{id}", petsWrite, (*visit).renameCategory},

	{"GET /console/events", eventsRead, (*visit).listEvents},
	{"GET " + streamPath, eventsRead, (*visit).streamEvents},

	{"GET /console/usage", 0, (*visit).showUsage},

	{"GET /console/failures", 0, (*visit).listFailures},

	{"GET /console/keys", admin, (*visit).listKeys},
	{"GET /console/keys/new", admin, (*visit).newKey},
	{"POST /console/keys", admin, (*visit).createKey},
	{"GET /console/keys/{id}", admin, (*visit).showKey},
	{"POST /console/keys/{id}", admin, (*visit).changeKey},
	{"POST /console/keys/{id}/suspend", admin, (*visit).suspendKey},
	{"POST /console/keys/{id}/resume", admin, (*visit).resumeKey},
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
	importPath = "/console/pets/import"
	exportPath = "/console/pets/export"
)

// slowPaths begin the paths of requests that limit their time themselves.
var slowPaths = []string{streamPath, photosPath, importPath, exportPath, petMarking.path + "/marked", orderMarking.path + "/marked"}

type route struct {
	pattern string
	needs   animalstore.Permissions // one of these; 0: none
	serve   func(*visit) error
}

func (c *Console) addRoutes() {
	c.mux.HandleFunc("GET /console/sign-in", c.showSignIn)
	c.mux.HandleFunc("POST /console/sign-in", c.signIn)
	c.mux.HandleFunc("POST /console/sign-out", c.signOut)
	c.handle(route{"GET /console", 0, (*visit).showOverview})
	c.handle(route{"GET /console/{$}", 0, (*visit).toOverview})
	for _, k := range []*marking{petMarking, orderMarking} {
		c.handle(route{"GET " + k.path + "/marked", 0, k.toList})
	}
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
		if !v.may(to.needs) {
			// No call of the API charges this to the key.
			if c.chargeAddress(w, r) {
				v.show(problem{
					Status: http.StatusForbidden, Heading: "Not allowed",
					Message: "This needs a key with the permission " + animalstore.JoinOr(to.needs.Names()) + ". Yours has " + animalstore.JoinNames(s.key.Permissions.Names()) + ".",
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

// say lets the next page say what was done.
func (v *visit) say(done string) {
	if done != "" {
		v.c.setCookie(v.w, v.r, doneCookie, done, "/console", 60)
	}
}

// goTo redirects to a page, which says what was done.
func (v *visit) goTo(path, done string) error {
	v.say(done)
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
	return nil
}
