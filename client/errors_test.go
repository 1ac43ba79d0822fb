package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"animalstore"
	"animalstore/client"
)

// TestErrorsNameTheRequest: every error begins with the method that the caller used,
// followed by the full address of the request.
func TestErrorsNameTheRequest(t *testing.T) {
	const list = "findPet: GET http://store.test/v1/pets?id=1&limit=100: "
	find := func(t *testing.T, c *client.Client) error { _, err := c.FindPet(t.Context(), 1); return err }
	place := func(t *testing.T, c *client.Client) error { _, err := c.PlaceOrder(t.Context(), 3); return err }
	tests := map[string]struct {
		reply reply
		call  func(*testing.T, *client.Client) error
		want  string
	}{
		"an error of the service": {response(401, `{"code":"invalid_api_key","message":"no","status":401}`), find, list + "invalid_api_key: no"},
		"a limit":                 {response(429, `{"code":"key_banned","message":"wait","status":429}`), place, "placeOrder: POST http://store.test/v1/store/orders: key_banned: wait"},
		"another server":          {response(200, "<html>"), find, list + "unexpected response with status 200"},
		"no response":             {func(*http.Request) (*http.Response, error) { return nil, errors.New("cut off") }, place, "placeOrder: POST http://store.test/v1/store/orders: cut off"},
		"no such pet":             {response(200, "[]"), find, "findPet: GET http://store.test/v1/pets?id=1: pet_not_found: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, _ := scriptedClient(t, []reply{test.reply}, client.WithMaxAttempts(1))
			err := test.call(t, c)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want it to begin with %q", err, test.want)
			}
		})
	}
}

// TestErrorsHaveTheRequest: programs find the address in a field.
func TestErrorsHaveTheRequest(t *testing.T) {
	c, _ := scriptedClient(t, []reply{response(404, `{"code":"order_not_found","message":"no","status":404}`)})
	_, err := c.UpdateOrder(t.Context(), 7, animalstore.OrderPatch{})
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Request != "PATCH http://store.test/v1/store/orders/7" {
		t.Errorf("got %+v, want the request in it", refused)
	}
}
