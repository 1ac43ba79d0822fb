package console

import (
	"net/http"

	"animalstore/client"
	"animalstore/internal/inprocess"
)

// callAPI returns what sends requests for a browser to the API, as the key with this
// secret. If that is nil, the requests have their own credential. See
// [inprocess.Transport] for to.
func (c *Console) callAPI(browser *http.Request, secret *[32]byte, to http.ResponseWriter) *inprocess.Transport {
	serve := func(w http.ResponseWriter, r *http.Request) {
		if secret != nil {
			r.Header.Del("Authorization")
		}
		c.Server.ServeAPI(w, r, secret)
	}
	return &inprocess.Transport{API: http.HandlerFunc(serve), For: browser, To: to}
}

// newClient returns a client of the API that never waits and never retries: that is up to
// the user.
func (c *Console) newClient(r *http.Request, secret [32]byte) *client.Client {
	api, err := client.New("http://console", "the-session-has-it",
		client.WithHTTPClient(&http.Client{Transport: c.callAPI(r, &secret, nil)}),
		client.WithMaxAttempts(1), client.WithMaxWait(0), client.WithUserAgent("animalstore-console"))
	if err != nil {
		panic(err) // all of it is fixed
	}
	return api
}
