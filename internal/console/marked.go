package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"animalstore"
	"animalstore/client"
)

const (
	// maxMarked is how many rows can be changed at once.
	maxMarked = 100
	// markedName is how many code points of a name a mark carries: the form has a limit.
	markedName = 40
)

// marking is a list whose rows can be marked, and then changed together.
type marking struct {
	path      string // of the list
	one, many string // what the rows are
	changes   []string
	// wording says a change in words.
	wording func(change string) wording
	// change changes one of them, unless it already is as the change makes it.
	change func(*visit, *markedPage, marked) error
}

// wording is a change of marked rows in words. %s stands for how many, such as "3 pets".
type wording struct {
	Question string // "" if it isn't asked
	Warning  string
	Button   string
	Verb     string // what was done: "changed"
	Notice   string // in doneTexts
	Red      bool   // it ends something
}

// markedPage asks before marked rows are changed, or shows what wasn't changed.
type markedPage struct {
	frame
	*marking
	wording
	Change  string
	Marked  []marked
	From    string // the list
	Form    petForm
	Changed int
	Refused []marked
	Stopped *problem // why Marked weren't tried; nil if all were
	patch   animalstore.PetPatch
	applied map[int64]bool // pets that turned out to be as the change makes them
}

// marked is a row as it was in the list.
type marked struct {
	ID     int64
	Mark   string // the value of its checkbox: see markOf
	Name   string
	Reason string // why it wasn't changed
	etag   string
}

// markOf is the value of a row's checkbox.
func markOf(id int64, etag, name string) string {
	return strconv.FormatInt(id, 10) + " " + etag + " " + shorten(name, markedName)
}

// Path is the page of a row, or the list.
func (p *markedPage) Path(ids ...int64) string {
	path := p.path
	for _, id := range ids {
		path += "/" + strconv.FormatInt(id, 10)
	}
	return path
}

// List is what the list is called.
func (p *markedPage) List() string { return sentenceCase(p.many) }

// Count is a number of rows, such as "3 pets".
func (p *markedPage) Count(n int) string {
	if n == 1 {
		return "one " + p.one
	}
	return number(int64(n)) + " " + p.many
}

// Say puts a number of rows into a wording.
func (p *markedPage) Say(words string, n int) string {
	return sentenceCase(strings.ReplaceAll(words, "%s", p.Count(n)))
}

// toList serves GET of the path of a question, which is reloaded.
func (k *marking) toList(v *visit) error { return v.goTo(k.path, "") }

// sent reads the form of the list or of the question.
func (k *marking) sent(v *visit) (p markedPage, err error) {
	change := v.field("change")
	if change == "" { // a button of a row or of the list
		change = v.r.URL.Query().Get("change")
	}
	p = markedPage{marking: k, wording: k.wording(change), Change: change, From: safeNext(v.field("from")), Form: petForm{Category: v.field("category")}}
	for _, mark := range v.r.PostForm["mark"] {
		id, rest, _ := strings.Cut(mark, " ")
		etag, name, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil || etag == "" {
			return p, badField("", "a marked "+k.one+" isn’t valid: open the list again")
		}
		p.Marked = append(p.Marked, marked{ID: n, Mark: mark, Name: name, etag: etag})
	}
	switch n := len(p.Marked); {
	case n == 0:
		return p, badField("", "mark at least one "+k.one+" first")
	case n > maxMarked:
		return p, badField("", "mark at most "+strconv.Itoa(maxMarked)+" "+k.many)
	case !slices.Contains(k.changes, change):
		return p, badField("", "choose what to change")
	}
	return p, nil
}

// ask serves the form of the list. It changes nothing yet if the change needs a question.
func (k *marking) ask(v *visit) error {
	p, err := k.sent(v)
	if err != nil {
		return err
	}
	if p.Question == "" {
		return k.apply(v)
	}
	return p.show(v)
}

// show asks whether to change the rows.
func (p *markedPage) show(v *visit) (err error) {
	if p.Change != changeCategory || !v.may(petsRead) {
		err = v.chargeAddress() // no call charges this page to the key
	} else if p.Form.Categories == nil {
		p.Form.Categories, err = v.readCategories()
	}
	if err != nil {
		return err
	}
	p.frame = v.frame("Change " + p.many)
	return v.render(p.Form.Problem.status(), "marked", p)
}

// apply serves the form of the question: one call for each row.
func (k *marking) apply(v *visit) error {
	defer v.allowWork()()
	p, err := k.sent(v)
	if err != nil {
		return err
	}
	if p.Change == changeCategory {
		category, err := v.category(&p.Form)
		if wrong, ok := formProblem(err); ok {
			p.Form.Problem = wrong
			return p.show(v)
		}
		if err != nil {
			return err
		}
		p.patch.CategoryID = &category
	}
	if err := p.changeEach(v); err != nil {
		return err
	}
	status := http.StatusConflict
	switch {
	case p.Stopped != nil:
		status = p.Stopped.Status
	case len(p.Refused) == 0:
		return v.goTo(p.From, p.Notice)
	}
	p.frame = v.frame("Change " + p.many)
	return v.render(status, "marked-result", &p)
}

// changeEach changes the rows of a page, and leaves there those that weren't tried.
func (p *markedPage) changeEach(v *visit) error {
	for len(p.Marked) > 0 {
		m := p.Marked[0]
		err := p.change(v, p, m)
		var refused *client.Error
		switch isRefusal := errors.As(err, &refused) && refused.Status < http.StatusInternalServerError; {
		case err == nil:
			p.Changed++
		case codeOf(err) == animalstore.InvalidAPIKey:
			return err
		case !isRefusal || refused.Status == http.StatusTooManyRequests:
			p.Stopped = stopped(err)
			return nil
		default:
			m.Reason = refusalText(err)
			if isStale(err) {
				m.Reason = "Someone changed it after you opened the list."
			}
			p.Refused = append(p.Refused, m)
		}
		p.Marked = p.Marked[1:]
	}
	return nil
}

// stopped is why a series of calls ended before its last one.
func stopped(err error) *problem {
	var limited *client.RateLimitError
	p := problem{Status: http.StatusServiceUnavailable, Message: refusalText(err)}
	switch {
	case errors.As(err, &limited):
		p = limitedBy(limited)
	case errors.Is(err, context.DeadlineExceeded):
		p.Message = "It took longer than " + span(int64(workTimeout.Seconds())) + "."
	}
	return &p
}
