package dbtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
)

// audience makes changes and knows which webhooks must get their events.
type audience struct {
	t        *testing.T
	d        db.DB
	webhooks []*listener
	pets     []int64 // newest last
	done     []string
}

type listener struct {
	animalstore.Webhook
	want []string // such as "pet.created pet/1"
}

func (a *audience) step(format string, args ...any) {
	a.done = append(a.done, fmt.Sprintf(format, args...))
}

func (a *audience) happened(e animalstore.EventType, id int64) {
	a.step("%s %d", e, id)
	for _, w := range a.webhooks {
		if w.State == animalstore.WebhookActive && slices.Contains(w.Types.Types(), e) {
			w.want = append(w.want, subject(e, id))
		}
	}
}

func (a *audience) create(types animalstore.EventPatterns) {
	w := mustCreateWebhook(a.t, a.d, types)
	a.step("create webhook %d for %s", w.ID, types)
	a.webhooks = append(a.webhooks, &listener{Webhook: w})
}

func (a *audience) add() {
	pet := mustCreatePet(a.t, a.d, animalstore.NewPet{Name: "Rex", CategoryID: 1})
	a.pets = append(a.pets, pet.ID)
	a.happened(animalstore.PetCreated, pet.ID)
}

// remove removes the newest pet, if there is one.
func (a *audience) remove() {
	if last := len(a.pets) - 1; last >= 0 {
		mustDeletePet(a.t, a.d, a.pets[last])
		a.happened(animalstore.PetDeleted, a.pets[last])
		a.pets = a.pets[:last]
	}
}

// patch changes all webhooks.
func (a *audience) patch(patch animalstore.WebhookPatch) {
	for _, w := range a.webhooks {
		a.patchOne(w, patch)
	}
}

func (a *audience) patchOne(w *listener, patch animalstore.WebhookPatch) {
	w.Webhook = mustUpdateWebhook(a.t, a.d, w.ID, patch)
	a.step("webhook %d is %s, for %s", w.ID, w.State, w.Types)
}

func (a *audience) disable(w *listener) {
	var err error
	w.Webhook, err = a.d.UpdateWebhook(a.t.Context(), w.ID, func(w *animalstore.Webhook) error { w.Disable("it fails"); return nil })
	if err != nil {
		a.t.Fatal(err)
	}
	a.step("webhook %d is %s", w.ID, w.State)
}

func (a *audience) pauseAll() {
	if _, err := a.d.PauseWebhooks(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
	a.step("pause all")
	for _, w := range a.webhooks {
		if w.State == animalstore.WebhookActive {
			w.State = animalstore.WebhookPaused
		}
	}
}

// dispatch dispatches everything. It does nothing while another process is dispatching.
func (a *audience) dispatch() {
	for more := true; more; {
		dispatch(a.t, a.d, noon)
		work, err := a.d.WebhookWork(a.t.Context(), noon)
		if err != nil {
			a.t.Fatal(err)
		}
		more = work.Events
	}
	a.step("dispatch")
}

// check dispatches everything, checks that the webhooks got the right events, and
// removes them.
func (a *audience) check() {
	a.t.Helper()
	for _, w := range a.webhooks {
		a.dispatch()
		got := []string{}
		for _, one := range deliveriesOf(a.t, a.d, w.ID, "") {
			events, _, err := a.d.Events(a.t.Context(), db.EventQuery{After: *one.EventID - 1, Limit: 1})
			if err != nil {
				a.t.Fatal(err)
			}
			got = append(types(events), got...)
		}
		if !slices.Equal(got, w.want) {
			a.t.Fatalf("%q:\nwebhook %d got %q,\nwant %q", a.done, w.ID, got, w.want)
		}
		if err := a.d.DeleteWebhook(a.t.Context(), w.ID, func(*animalstore.Webhook) error { return nil }); err != nil {
			a.t.Fatal(err)
		}
	}
}

func setState(s animalstore.WebhookState) func(*audience) {
	return func(a *audience) { a.patch(animalstore.WebhookPatch{State: &s}) }
}

func setTypes(types animalstore.EventPatterns) func(*audience) {
	return func(a *audience) { a.patch(animalstore.WebhookPatch{Types: &types}) }
}

func setBoth(types animalstore.EventPatterns, s animalstore.WebhookState) func(*audience) {
	return func(a *audience) { a.patch(animalstore.WebhookPatch{Types: &types, State: &s}) }
}

// pausesLoseNothing dispatches between the steps of each case, in all combinations of
// places.
func pausesLoseNothing(t *testing.T, d db.DB) {
	add, remove, pauseAll := (*audience).add, (*audience).remove, (*audience).pauseAll
	pause, resume := setState(animalstore.WebhookPaused), setState(animalstore.WebhookActive)
	disable := func(a *audience) { a.disable(a.webhooks[0]) }
	create := func(a *audience) { a.create("pet.*") }
	for _, steps := range [][]func(*audience){
		{add, pause, add, resume, add},
		{add, disable, add, resume, add},
		{add, pauseAll, add, resume, add},
		{add, create, remove},
		{add, setTypes("pet.deleted"), remove, setTypes("pet.created"), add},
		{add, pause, setTypes("pet.deleted"), resume, remove},
		{add, setBoth("pet.deleted", animalstore.WebhookPaused), remove, setBoth("pet.created", animalstore.WebhookActive), add},
	} {
		for places := range 1 << (len(steps) - 1) {
			a := &audience{t: t, d: d}
			create(a)
			for i, step := range steps {
				step(a)
				if places&(1<<i) != 0 {
					a.dispatch()
				}
			}
			a.check()
		}
	}
}

// dispatchConcurrently publishes and dispatches a little at a time, concurrently with
// others, until the returned function is called.
func dispatchConcurrently(t *testing.T, d db.DB) (end func()) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for n := range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, publish := d.PublishEvents(t.Context())
				_, dispatch := d.DispatchEvents(t.Context(), noon, 1+n)
				if err := errors.Join(publish, dispatch); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() { close(stop); wg.Wait() }
}

// pausesInAnyOrder takes random steps while others dispatch.
func pausesInAnyOrder(t *testing.T, d db.DB) {
	defer dispatchConcurrently(t, d)()
	for round := range testenv.Count(3, 1000) {
		randomPauses(t, d, uint64(round), 30)
	}
}

// typesDuringWrites keeps changing the types of a webhook while another caller makes
// changes that it always gets.
func typesDuringWrites(t *testing.T, d db.DB) {
	defer dispatchConcurrently(t, d)()
	a := &audience{t: t, d: d}
	a.create("pet.created")
	written := make(chan struct{})
	go func() {
		defer close(written)
		for range 80 {
			if _, _, err := d.CreatePet(t.Context(), rex, nil); err != nil {
				t.Error(err)
			}
		}
	}()
	for writing := true; writing; {
		select {
		case <-written:
			writing = false
		default:
			setTypes("pet.*")(a)
			setTypes("pet.created")(a)
		}
	}
	a.dispatch()
	events := map[int64]bool{}
	all := deliveriesOf(t, d, a.webhooks[0].ID, "")
	for _, one := range all {
		events[*one.EventID] = true
	}
	if len(all) != 80 || len(events) != 80 {
		t.Errorf("%d deliveries of %d events, want 80", len(all), len(events))
	}
}

func randomPauses(t *testing.T, d db.DB, seed uint64, steps int) {
	t.Helper()
	source := rand.New(rand.NewPCG(seed, 0))
	patterns := []animalstore.EventPatterns{"pet.created", "pet.deleted", "pet.*"}
	states := []animalstore.WebhookState{animalstore.WebhookActive, animalstore.WebhookPaused}
	a := &audience{t: t, d: d}
	for range steps {
		kind := source.IntN(20)
		if len(a.webhooks) == 0 || kind == 0 && len(a.webhooks) < 4 {
			a.create(patterns[source.IntN(3)])
			continue
		}
		one := a.webhooks[source.IntN(len(a.webhooks))]
		switch {
		case kind < 5:
			a.add()
		case kind < 9:
			a.remove()
		case kind < 12:
			a.patchOne(one, animalstore.WebhookPatch{State: &states[source.IntN(2)]})
		case kind < 13:
			a.patchOne(one, animalstore.WebhookPatch{Types: &patterns[source.IntN(3)]})
		case kind < 14:
			a.patchOne(one, animalstore.WebhookPatch{Types: &patterns[source.IntN(3)], State: &states[source.IntN(2)]})
		case kind < 15:
			a.disable(one)
		case kind < 16:
			a.pauseAll()
		case kind < 18:
			if _, err := d.PublishEvents(t.Context()); err != nil {
				t.Fatal(err)
			}
			a.step("publish")
		default:
			if _, err := d.DispatchEvents(t.Context(), noon, 1+source.IntN(3)); err != nil {
				t.Fatal(err)
			}
			a.step("dispatch some")
		}
	}
	a.check()
}

// disabledWebhooksContinue: the service disables a webhook between an event and its
// dispatch.
func disabledWebhooksContinue(t *testing.T, d db.DB) {
	a := &audience{t: t, d: d}
	a.create("pet.*")
	a.add()
	a.dispatch()
	due := claim(t, d, noon)
	a.add()
	mustPublish(t, d)
	if reason := finish(t, d, &due[0], noon, 410); reason == "" {
		t.Fatal("410 doesn't disable")
	}
	a.webhooks[0].State = animalstore.WebhookDisabled
	a.add()
	setState(animalstore.WebhookActive)(a)
	a.add()
	a.check()
}

// much adds more pets than one call publishes events of, and removes one.
func (a *audience) much() {
	a.t.Helper()
	createMany(a.t, a.d, 1100)
	a.step("add 1100 pets")
	a.remove()
}

func changesFarBehind(t *testing.T, d db.DB) {
	a := &audience{t: t, d: d}
	a.add()
	a.much() // a webhook gets nothing from before its creation, however much that is
	a.create("pet.deleted")
	for range db.MaxBacklog/1100 + 1 {
		a.much()
	}
	setState(animalstore.WebhookPaused)(a)
	webhook := a.webhooks[0]
	for _, patch := range []animalstore.WebhookPatch{
		{State: new(animalstore.WebhookActive)},
		{Types: new(animalstore.EventPatterns("pet.*"))},
	} {
		_, err := d.UpdateWebhook(t.Context(), webhook.ID, patch.Apply)
		wantCode(t, err, animalstore.Overloaded)
	}
	a.patch(animalstore.WebhookPatch{Description: new("changed")}) // this waits for nothing
	if got, err := d.Webhook(t.Context(), webhook.ID); err != nil || got != webhook.Webhook {
		t.Errorf("got %+v, %v, want %+v", got, err, webhook.Webhook)
	}
	if _, err := d.DispatchEvents(t.Context(), noon, 1100); err != nil {
		t.Fatal(err)
	}
	setState(animalstore.WebhookActive)(a)
	a.check()
}
