package api_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/api"
)

var pathParameter = regexp.MustCompile(`\{\w+\}`)

// TestNotFound: every operation on a resource that doesn't exist, or with something that isn't a
// valid id, returns the resource's 404, even if the request has a precondition.
func TestNotFound(t *testing.T) {
	t.Parallel()
	s := start(t).inProcess()
	codes := map[string]animalstore.Code{
		"{petId}": "pet_not_found", "{photoId}": "photo_not_found", "{orderId}": "order_not_found",
		"{keyId}": "key_not_found", "{webhookId}": "webhook_not_found", "{deliveryId}": "delivery_not_found",
	}
	paths := map[string]string{}
	for _, route := range api.Operations() {
		paths[route.ID] = route.Path
	}
	webhook := fmt.Sprint(s.addWebhook(t).ID)
	for _, op := range operations {
		parameters := pathParameter.FindAllString(paths[op.id], -1)
		for i, parameter := range parameters {
			if parameter == "{categoryId}" {
				continue // every integer is the id of a category
			}
			path := paths[op.id]
			for _, before := range parameters[:i] {
				path = strings.Replace(path, before, webhook, 1)
			}
			c := op.call(t, s)
			c.key, c.bad = s.admin, true
			ids := []string{"999999", "abc"}
			if op.id == "getPet" { // all ids are read in one place
				ids = append(ids, "0", "-1", "+1", "01", "1.0", "1e0", "0x1", "%20", "1%20", "%D9%A1", "9223372036854775807", "9223372036854775808", strings.Repeat("9", 400),
					"%00", "1%00", "%FF", "1;x=y", "1,2", "%252F", "...", "*")
			}
			for _, id := range ids {
				c.path = pathParameter.ReplaceAllString(strings.Replace(path, parameter, id, 1), "1")
				s.do(t, c).want(t, http.StatusNotFound, codes[parameter])
				s.do(t, with(c, "If-Match", `"x"`)).want(t, http.StatusNotFound, codes[parameter])
			}
		}
	}
	t.Run("delivery of another webhook", func(t *testing.T) {
		delivery := onDelivery("GET", "")(t, s)
		delivery.key = s.admin
		s.do(t, delivery).want(t, http.StatusOK, "")
		_, id, _ := strings.Cut(delivery.path, "/deliveries/")
		delivery.path = fmt.Sprintf("/v1/webhooks/%s/deliveries/%s", webhook, id)
		s.do(t, delivery).want(t, http.StatusNotFound, animalstore.DeliveryNotFound)
	})
}
