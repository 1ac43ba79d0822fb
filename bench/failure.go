package main

// A benchmark is of no use once something failed, so an error ends it at once, as
// t.Fatal ends a test: check and must panic with a failure, which attempt turns
// into an error again. Functions return an error only where one can be handled.
type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

// attempt calls f and returns the error that ended it, if any.
func attempt(f func()) (err error) {
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case failure:
			err = thrown.error
		default:
			panic(thrown)
		}
	}()
	f()
	return nil
}

// unavailableError is why a server can't be built or run here.
type unavailableError struct{ error }
