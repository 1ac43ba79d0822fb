//go:build linux

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"animalstore"
	goclient "animalstore/client"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"
)

// testClerk counts the clicks of a clerk's day on a phone. A soak also counts them on a desk
// and without JavaScript.
func testClerk(t *testing.T, browser context.Context) {
	for _, script := range []bool{true, false} {
		for _, width := range []int64{390, 1280} {
			t.Run(fmt.Sprintf("width=%d/script=%v", width, script), func(t *testing.T) {
				if width == 1280 || !script {
					testenv.OnlySoak(t, "repeats the day in other circumstances")
				}
				s := start(t)
				p := openTab(t, browser, s)
				p.signIn(s, s.ownerKey())
				if !script {
					p.disableScript()
				}
				p.lookAs(width, 844, "light")
				c := &clerk{p, s, newGoClient(t, s.url, s.ownerKey()), 0}
				c.openMenu(width)
				c.find()
				c.add()
				c.sell()
				c.approveFive()
			})
		}
	}
}

// clerk is someone who works with the console. Writing and pressing Enter are no clicks.
type clerk struct {
	*tab
	s      *server
	api    *goclient.Client
	clicks int
}

func (c *clerk) press(selector string) chromedp.Action[chromedp.Void] {
	c.clicks++
	return click(selector)
}

// wantClicks fails the test unless a job took at most this many clicks.
func (c *clerk) wantClicks(job string, want int) {
	c.t.Helper()
	if c.clicks > want {
		c.t.Errorf("%s takes %d clicks, want at most %d", job, c.clicks, want)
	}
	c.clicks = 0
}

func (c *clerk) pet(name string) animalstore.Pet {
	c.t.Helper()
	pet, err := c.api.CreatePet(c.t.Context(), animalstore.NewPet{Name: name, CategoryID: 3})
	if err != nil {
		c.t.Fatal(err)
	}
	return pet
}

func (c *clerk) order(name string) animalstore.Order {
	c.t.Helper()
	order, err := c.api.PlaceOrder(c.t.Context(), animalstore.NewOrder{PetID: c.pet(name).ID, Note: "ring twice"})
	if err != nil {
		c.t.Fatal(err)
	}
	return order
}

// openMenu follows a link of the menu, which a phone hides until it is asked for.
func (c *clerk) openMenu(width int64) {
	c.t.Helper()
	const orders = `.rail [href="/console/orders"]`
	c.open(c.s, "/console", "#latest")
	if phone := width < 960; phone {
		if eval[bool](c.tab, `document.querySelector(".rail").checkVisibility()`) {
			c.t.Error("the menu covers the page before it is opened")
		}
		c.do("open the menu", c.press(".bar .menu"), visible(orders))
	}
	c.do("follow a link", c.press(orders), visible(".tabs"))
	c.wantClicks("opening the orders", 2)
}

// find finds a pet by the second word of its name.
func (c *clerk) find() {
	c.t.Helper()
	c.pet("Bello von Testhund")
	c.open(c.s, "/console", "#latest")
	c.do("find", write("#find", "testhund"), chromedp.KeyEvent("\r"), visible(".lead a"))
	if got := c.text("tbody"); !strings.Contains(got, "Bello von Testhund") {
		c.t.Errorf("got %q, want the pet", got)
	}
	c.wantClicks("finding by the second word", 0)
}

// add adds a pet with a category and two photos.
func (c *clerk) add() {
	c.t.Helper()
	var files []string
	for _, name := range []string{"one.jpg", "two.jpg"} {
		files = append(files, mustWrite(c.t, filepath.Join(c.t.TempDir(), name), string(phototest.JPEG(phototest.Drawing(320, 240))), 0o644))
	}
	c.open(c.s, "/console", "#latest")
	c.do("open the form", c.press(".heading .primary"), visible("#category"))
	c.clicks++ // on the field, before the dialog of the system
	c.do("add", write("#name", "Kim"), write("#category", "3"), chromedp.SetUploadFiles(chromedp.CSS("#files"), files),
		c.press("main form .primary"), visible(".pictures a:nth-child(2)"))
	if got := c.text("h1"); got != "Kim" {
		c.t.Errorf("got the page of %q, want the new pet", got)
	}
	c.wantClicks("adding a pet with two photos", 4)
}

// sell approves and delivers an order from the overview.
func (c *clerk) sell() {
	c.t.Helper()
	order := c.order("Rex")
	c.open(c.s, "/console", "#latest")
	c.do("approve", c.press(".act button"), visible("tbody .tag.approved"))
	c.do("deliver", c.press(".act button"), visible(".marked"), c.press("main form .primary"), visible(".notice.done"))
	c.wantClicks("selling from the overview", 3)
	c.wantOrder(order.ID, animalstore.OrderDelivered)
}

func (c *clerk) wantOrder(id int64, want animalstore.OrderStatus) {
	c.t.Helper()
	order, err := c.api.GetOrder(c.t.Context(), id)
	if err != nil || order.Status != want {
		c.t.Errorf("order %d: got %s, %v, want %s", id, order.Status, err, want)
	}
}

// approveFive approves all orders that were placed.
func (c *clerk) approveFive() {
	c.t.Helper()
	var orders []animalstore.Order
	for i := range 5 {
		orders = append(orders, c.order(fmt.Sprint("Rex ", i)))
	}
	c.open(c.s, "/console", "#latest")
	c.do("see them", c.press(`.section [href$="status=placed"]`), visible("#marked"))
	c.do("mark them", c.press("#all"), visible("[name=mark]:checked"))
	c.do("approve them", c.press(`#marked [formaction$="approved"]`), visible(".notice.done"))
	c.wantClicks("approving five orders", 3)
	for _, o := range orders {
		c.wantOrder(o.ID, animalstore.OrderApproved)
	}
}
