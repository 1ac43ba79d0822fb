package console

import "animalstore"

// Route is a page or an action, for tests that go through all of them.
type Route struct {
	Pattern string
	Needs   animalstore.Permissions // one of these; 0: none
}

// Routes returns every page and action for somebody who is signed in, except the overview.
func Routes() (all []Route) {
	for _, r := range routes {
		all = append(all, Route{r.pattern, r.needs})
	}
	return all
}

// Initial is what a placeholder shows of a name.
func Initial(name string) string { return initial(name) }
