// Package client calls the Animal Store API.
//
//	c, err := client.New("http://127.0.0.1:8080", os.Getenv("ANIMALSTORE_API_KEY"))
//	if err != nil {
//		return err
//	}
//	pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 7})
//
// There is one method for every operation of the API, with the operation's name and the
// types of package animalstore. Create one Client per key and share it between
// goroutines. It waits when the service tells it to, retries temporary failures, and
// never makes a change twice that you requested once.
//
// # Lists
//
// A list is an iterator. It requests a page when the loop gets there, and
// nothing more after a break:
//
//	for pet, err := range c.ListPets(ctx, animalstore.PetQuery{Status: animalstore.PetAvailable}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(pet.Name)
//	}
//
// An error ends the list. Everything that exists from the first page to the last is
// listed exactly once, even if other entries are added, removed or changed concurrently.
//
// # Events
//
// [Client.Events] follows every change of the store and waits for the next one. It
// resumes where it was after any failure, so the loop gets each event once and in
// order. It reads a stream, which is one request:
//
//	for event, err := range c.Events(ctx, animalstore.EventQuery{Types: "pet.*"}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(event.Type, event.Subject)
//	}
//
// # Errors
//
// Errors of the service have a code, and codes never change:
//
//	var coded *animalstore.Error
//	if errors.As(err, &coded) && coded.Code == animalstore.PetNotAvailable {
//		// someone else was faster
//	}
//
// The [*Error] that wraps it has the HTTP status and the request id, which is also in
// the server's log. A [*RateLimitError] says which limit was reached and when it
// resets. A [*ResponseError] means that the response can't be from the service, such as
// a proxy's page. Any other error is from the network or the context, prefixed with the
// name of the operation.
//
// A change that fails was not made, unless errors.Is(err, [ErrOutcomeUnknown]):
// then it was sent, but its response was lost. No error or log value contains
// the API key.
//
// # Retries
//
// A call is sent up to five times ([WithMaxAttempts]), as long as its context
// allows. After 429 and 503 the client waits as long as Retry-After says plus a
// random time; after a lost connection, an incomplete response, or a 5xx from a
// proxy it waits a random time of up to half a second, then one, two and four
// seconds ([WithBackoff]). If a wait would end after the context's deadline, the
// call returns its error immediately instead. Other errors are final, including
// internal_error.
//
// Retries are safe:
//
//   - CreatePet, CreatePetBatch, PlaceOrder and AddPhoto send an Idempotency-Key: a random
//     one for each call, or yours ([IdempotencyKey]). The service responds to a repeated
//     key as it did the first time, and [Meta.Replayed] is set. ImportPets makes its keys
//     from the pets, so that it can be called again even after a crash.
//   - UpdatePet, PutCategory, UpdateKey, RevokeKey and UnbanKey set a value, and
//     can set it again. If someone else changes it in between, their change is
//     overwritten as if the call had been made later. Use [IfMatch] where that
//     matters: then a repeated change fails with precondition_failed and
//     [ErrOutcomeUnknown], because the change in between may have been the lost
//     attempt itself. Read the resource again and decide.
//   - UpdateOrder makes a step that is possible only once. If an attempt was lost
//     and the next one is refused, that is [ErrOutcomeUnknown] for the same
//     reason.
//   - DeletePet, DeletePhoto and DeleteWebhook succeed if the resource is gone after
//     an attempt that got no response. If it was gone before the first attempt, that
//     is an error, such as pet_not_found.
//   - CreateKey, RotateKey, CreateWebhook, RotateWebhook and PingWebhook do
//     something new each time, so they are only retried if it's certain that nothing was
//     done: because the response says so, or because there was no connection.
//
// # Limits
//
// The plan of a key sets how many requests it may send per minute and per day.
// Beyond that the service refuses requests, and bans keys that keep sending. A
// Client tracks the headers of every response for all its goroutines: while it
// knows that nothing is left it sends nothing, and calls wait for the window to
// end. To limit that wait, give the context a deadline, or use [WithMaxWait]: a
// call that would wait longer fails immediately with a [*RateLimitError].
// Without either, a key that has used up its day waits until midnight UTC.
// [WithOnWait] reports every wait before it begins. [Client.RateLimit] returns
// the latest headers. After two minutes without a request, a Client lets one new
// call find out whether a limit still applies, because a ban may have been
// lifted or a plan upgraded.
//
// # Pacing
//
// By default requests are sent immediately until a window is used up; then all
// calls wait until it ends. A 429 is possible if others use the same key, or if
// many goroutines start at once with a new Client that hasn't seen any headers.
//
// [WithPacing] is for bulk jobs. The first request of a window goes alone, to
// learn how much is left. Half of the minute's requests may then be sent
// immediately, so a small job isn't slowed down; the other half is spread evenly
// over the rest of the minute. The whole plan is used, nothing pauses for long,
// and there is never a 429 while nobody else uses the key. If somebody does, both
// can get a 429: calls then wait until the window ends. A call whose deadline is
// before its turn is sent immediately. Days are not spread: their requests are
// used when they are needed. If a proxy drops the headers, requests are sent one
// at a time.
//
// # Logs
//
// [WithOnAttempt] reports every request and its response: method, path, status, duration
// and request id, but neither the key nor bodies.
//
// # Testing
//
// Package clienttest runs the real service in your tests, with its own database,
// in one call.
package client
