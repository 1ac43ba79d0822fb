package console

import (
	"net/http"

	"animalstore/client"
	"animalstore/internal/inprocess"
)

// serveAPI serves a request to the API, as the key that is signed in.
func (v *visit) serveAPI(w http.ResponseWriter, r *http.Request) {
	r.Header.Del("Authorization")
	v.c.Server.ServeAPI(w, r, &v.secret)
}

// transport sends requests for the browser to the API, as the key that is signed in. See
// [inprocess.Transport] for to.
func (v *visit) transport(to http.ResponseWriter) *inprocess.Transport {
	return &inprocess.Transport{API: http.HandlerFunc(v.serveAPI), For: v.r, To: to}
}

// newClient returns a client of the API that never waits and never retries: that is up to
// the user.
func newClient(api *inprocess.Transport) *client.Client {
	c, err := client.New("http://console", "the-session-has-it",
		client.WithHTTPClient(&http.Client{Transport: api}),
		client.WithMaxAttempts(1), client.WithMaxWait(0), client.WithUserAgent("animalstore-console"))
	if err != nil {
		panic(err) // all of it is fixed
	}
	return c
}
