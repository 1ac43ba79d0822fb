package sqlite

import (
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// BenchmarkCreatePet is a lone caller, without the wait for the disk.
func BenchmarkCreatePet(b *testing.B) {
	d, err := Open(b.Context(), filepath.Join(b.TempDir(), "store.db"), Options{Serve: true, Tuning: Tuning{NoSync: true}})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	ctx := withStandby(b.Context(), &fakeStandby{}) // as a request has
	for b.Loop() {
		if _, _, err := d.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPets reads a page of twenty.
func BenchmarkPets(b *testing.B) {
	d, err := Open(b.Context(), filepath.Join(b.TempDir(), "store.db"), Options{Serve: true, Tuning: Tuning{NoSync: true}})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for range 1000 {
		if _, _, err := d.CreatePet(b.Context(), animalstore.NewPet{Name: "Rex the twenty-first", CategoryID: 1}, nil); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := d.Pets(b.Context(), db.PetQuery{Limit: 20}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCreateDurable is what a create costs with a wait for the disk, for some
// callers at once.
func BenchmarkCreateDurable(b *testing.B) {
	for _, callers := range []int{1, 16, 128} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			d, err := Open(b.Context(), filepath.Join(b.TempDir(), "store.db"), Options{Serve: true})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			var turns sync.WaitGroup
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			for range callers {
				turns.Go(func() {
					for left.Add(-1) >= 0 {
						if _, _, err := d.CreatePet(b.Context(), animalstore.NewPet{Name: "Rex the twenty-first", CategoryID: 1}, nil); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			turns.Wait()
		})
	}
}

// BenchmarkSaveUsage saves the usage of a thousand busy keys, without the wait for the
// disk.
func BenchmarkSaveUsage(b *testing.B) {
	d, err := Open(b.Context(), filepath.Join(b.TempDir(), "store.db"), Options{Serve: true, Tuning: Tuning{NoSync: true}})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	var usage []animalstore.Usage
	for i := range 1000 {
		key, err := d.CreateKey(b.Context(), animalstore.NewKey{Name: "k", Plan: "free", Permissions: 1, Environment: "production"}, db.KeyHash{byte(i), byte(i >> 8)}, animalstore.AtMilli(1))
		if err != nil {
			b.Fatal(err)
		}
		usage = append(usage, animalstore.Usage{KeyID: key.ID, Admitted: 1})
	}
	for used := int64(1); b.Loop(); used++ {
		for i := range usage {
			usage[i].LastUsed = animalstore.AtMilli(used)
		}
		if err := d.SaveUsage(b.Context(), usage); err != nil {
			b.Fatal(err)
		}
	}
}
