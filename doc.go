// Package animalstore is the domain of the pet store: the pets and
// orders it keeps, the keys that open it, the rules each of them obeys and the
// errors a caller can meet.
//
// It knows nothing of HTTP, SQL or the clock. Rules live on the types, so that
// the server, the client and every database agree on them.
package animalstore
