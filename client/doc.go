// Package client calls the pet store over HTTP.
//
//	c, err := client.New("http://127.0.0.1:8080", os.Getenv("ANIMALSTORE_API_KEY"))
//	if err != nil {
//		return err
//	}
//	pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 7})
//
// There is one method for every operation of the API, named like the operation,
// with the types of package animalstore. Make one Client for a key and share it
// between goroutines. It does what the service asks of its callers: it waits
// when it is told to, sends again what failed in passing, and never does twice
// what was asked for once.
//
// # Lists
//
// A list is an iterator. It asks for a page when the loop gets there, and for
// nothing more after a break:
//
//	for pet, err := range c.ListPets(ctx, client.PetQuery{Status: animalstore.PetAvailable}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(pet.Name)
//	}
//
// An error ends the list. What was there from the first page to the last is
// listed exactly once, whatever came, went or changed meanwhile.
//
// # Errors
//
// What the service refused has a code, and codes do not change:
//
//	var coded *animalstore.Error
//	if errors.As(err, &coded) && coded.Code == animalstore.PetNotAvailable {
//		// somebody else was faster
//	}
//
// [*Error] around it has the HTTP status and the request's id in the server's
// log. [*RateLimitError] tells which limit was reached and when it is over.
// [*AnswerError] is an answer that the service does not give, such as a proxy's
// page. Anything else is the network's or the context's error, with the name of
// the operation before it.
//
// A change that fails was not made, unless errors.Is(err, [ErrOutcomeUnknown]):
// then it was sent, and its answer was lost for good. No error and no log value
// has the API key in it.
//
// # Retries
//
// A call is sent up to five times ([WithMaxAttempts]), as long as its context
// allows. After 429 and 503 the client waits for as long as Retry-After says and
// a random while more; after a lost connection, half an answer, or a proxy's 5xx
// it waits a random time up to half a second, a second, two, four
// ([WithBackoff]). A wait that would end after the context's deadline is not
// begun: the call returns the error it has, at once. Other errors are final,
// internal_error among them.
//
// What is sent again does no harm:
//
//   - CreatePet and PlaceOrder carry an Idempotency-Key, made by chance for each
//     call or brought by you ([IdempotencyKey]). The service answers a repeated
//     one as it did the first time; [Meta.Replayed] tells.
//   - UpdatePet, PutCategory, UpdateKey, RevokeKey and UnbanKey set something to
//     a value, and may set it once more. Where somebody else changes it in
//     between, their change is overwritten as if the call had been made later.
//     Give [IfMatch] where that matters: then a repeated change fails with
//     precondition_failed, marked with [ErrOutcomeUnknown], for the change in
//     between may be the lost attempt itself. Read it again and decide.
//   - UpdateOrder makes a step that can be made once. If an attempt was lost and
//     the next one is refused, that is [ErrOutcomeUnknown] for the same reason.
//   - DeletePet succeeds if the pet is gone after an attempt without an
//     answer. If it was gone before the first attempt, that is pet_not_found.
//   - CreateKey and RotateKey make a new secret each time, so they are sent again
//     only after an answer, or the lack of a connection, that shows that nothing
//     was done.
//
// # Limits
//
// A key has as many requests a minute and a day as its plan gives it. Past that
// the service refuses, and bans a key that goes on. A Client counts along by the
// headers of every answer, for all its goroutines together: while it knows that
// nothing is left it sends nothing, and calls wait for the window to end. To
// bound that, give the context a deadline, or use [WithMaxWait]: a call that
// would have to wait longer fails at once with a [*RateLimitError]. Otherwise a
// key whose day is used up waits for midnight. [WithOnWait] tells of every wait
// beforehand. [Client.RateLimit] is what the headers told last. A Client that
// sent nothing for two minutes lets one new call ask whether a limit still holds,
// for a ban may have been lifted or a plan enlarged.
//
// # Pacing
//
// By default requests go as fast as they are made until a window is used up;
// then all stop until it ends. A 429 happens if others use the same key, or if
// many goroutines begin at once with a new Client that has not seen a header
// yet.
//
// [WithPacing] is for bulk jobs. The first request of a window goes alone and
// learns what there is. Half of the minute's requests may then go as fast as
// they come, so a small job is not slowed down; the other half is spread evenly
// over what is left of the minute. All of the plan is used, nothing stands still
// for long, others who use the key find something left until the last moments of
// the minute, and a 429 never happens while there are none. If there are, the
// headers show it: the pace slows down, and twice as many requests as they took
// between two answers are left to them at the end. A call whose deadline is nearer than its
// turn goes at once. Days are not spread: their requests are used when they are
// needed. Where a proxy drops the headers, requests go one at a time.
//
// # Testing
//
// Package clienttest runs the real service in your tests, on a database of its
// own, with one call.
package client
