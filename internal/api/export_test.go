package api

// What tests in package api_test may see of the inside.

var (
	ParseInteger = parseInteger
	AppendPet    = appendPet
	AppendPets   = appendPets
	StatusOf     = statusOf
)

const (
	MaxBody        = maxBody
	HandlerTimeout = handlerTimeout
)

// Operation is one row of the route table.
type Operation struct{ Method, Path, ID string }

// Operations is the route table.
func Operations() []Operation {
	all := make([]Operation, len(routes))
	for i, r := range routes {
		all[i] = Operation{r.method, r.path, r.operation}
	}
	return all
}
