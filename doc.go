// Package animalstore is the domain of the Animal Store: pets, orders and API
// keys, the rules for each of them, and the errors that callers can get.
//
// It doesn't depend on HTTP, SQL or the clock. Rules are methods of the types,
// so the server, the client and every database apply the same ones.
package animalstore
