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
	c.handle("GET /console/sign-in", (*visit).showSignIn)
	c.handle("POST /console/sign-in", (*visit).signIn)
	c.handle("POST /console/sign-out", (*visit).signOut)
	signedIn := []route{
		{"GET /console", 0, (*visit).showOverview},
		{"GET /console/{$}", 0, (*visit).toOverview},
		{"GET " + petMarking.path + "/marked", 0, petMarking.toList},
		{"GET " + orderMarking.path + "/marked", 0, orderMarking.toList},
		{"/console/", 0, (*visit).notFound},
	}
	for _, r := range append(signedIn, routes...) {
		c.handle(r.pattern, r.enter)
	}
}

func (c *Console) handle(pattern string, serve func(*visit) error) {
	c.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		v := &visit{c: c, w: w, r: r}
		if err := serve(v); err != nil {
			v.fail(err)
		}
	})
}

// visit is a request of a browser.
type visit struct {
	*signedIn // nil without a session
	c         *Console
	w         http.ResponseWriter
	r         *http.Request
	api       *client.Client // as the key that is signed in
	id        int64          // the {id} of the path
	begun     bool           // the header of the response was sent
}

// enter serves a request of someone who is signed in.
func (to route) enter(v *visit) (err error) {
	if v.signedIn, err = v.c.findSession(v.r); err != nil {
		return err
	}
	if v.signedIn == nil {
		return v.leadToSignIn()
	}
	v.api = newClient(v.transport(nil))
	if tooLarge(v.r) {
		return problem{
			Status: http.StatusRequestEntityTooLarge, Heading: "The form is too large",
			Message: "A form may have at most " + size(maxForm) + ". Nothing was changed: go back in your browser and shorten what you typed.",
		}
	}
	if !v.may(to.needs) {
		if err := v.chargeAddress(); err != nil { // no call of the API charges this to the key
			return err
		}
		return problem{
			Status: http.StatusForbidden, Heading: "Not allowed",
			Message: "This needs a key with the permission " + animalstore.JoinOr(to.needs.Names()) +
				". Yours has " + animalstore.JoinNames(v.key.Permissions.Names()) + ".",
		}
	}
	if v.id, err = v.pathID("id"); err != nil {
		return err
	}
	return to.serve(v)
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
	v.setCookie(doneCookie, "", -1)
	return doneText(cookie.Value)
}

// toOverview serves GET /console/, which people type.
func (v *visit) toOverview() error { return v.goTo("/console", "") }

func (v *visit) notFound() error {
	if err := v.chargeAddress(); err != nil {
		return err
	}
	return notFound("The console has no page at this address.")
}

// doneCookie names what was done for the next page to say, once.
const doneCookie = "animalstore_done"

// say lets the next page say what was done.
func (v *visit) say(done string) {
	if done != "" {
		v.setCookie(doneCookie, done, 60)
	}
}

// goTo redirects to a page, which says what was done.
func (v *visit) goTo(path, done string) error {
	v.say(done)
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
	return nil
}

// finish leads to a page that says what was done. If the form was refused and can be fixed,
// again shows it with what is wrong.
func (v *visit) finish(err error, path, done string, again func(formError) error) error {
	if wrong, ok := formProblem(err); ok {
		return again(wrong)
	}
	if err != nil {
		return err
	}
	return v.goTo(path, done)
}
