package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"animalstore"
	"animalstore/client"

	"github.com/spf13/cobra"
)

func petsExportCommand(conn *connection) *cobra.Command {
	var format string
	var category int64
	q := client.PetQuery{PageSize: maxPage}
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write pets to a file",
		Long: `Write all pets, or those that the filters leave, to a file or to standard
output: the latest first, as CSV or as JSON Lines. Pets that are there all
the while are written once each, whatever else changes meanwhile.

The requests keep to the limits of the key, and wait where those are used up.
The file appears when it is complete, and not before.

CSV cannot tell the two ways of breaking a line within a name apart. JSON Lines
keeps every name as it is.`,
		Example: `  animalstore pets export pets.csv
  animalstore pets export --status sold sold.jsonl
  animalstore pets export --format jsonl | gzip > pets.jsonl.gz`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{fmt.Errorf("name one file, or none for standard output. See %q", cmd.CommandPath()+" --help")}
			}
			name := "-"
			if len(args) == 1 {
				name = args[0]
			}
			if format == "" {
				if format = formatOf(name); format == "" {
					format = formatCSV
				}
			}
			if cmd.Flag("category").Changed {
				q.CategoryID = &category
			}
			conn.bulk = true
			return conn.do(cmd, false, func(s session) error {
				return s.exportPets(cmd, name, format, q)
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(oneOf[string]{&format, petFormats, "format"}, "format", "csv or jsonl (default by the file's name, else csv)")
	flags.Var(oneOf[animalstore.PetStatus]{&q.Status, animalstore.PetStatuses, "status"}, "status", "only those in this status: available, pending or sold")
	flags.Int64Var(&category, "category", 0, "only those of the category with this `id`")
	return cmd
}

func (s session) exportPets(cmd *cobra.Command, name, format string, q client.PetQuery) error {
	file, keep, err := createPets(name, s.out)
	if err != nil {
		return fileError(err)
	}
	p := newProgress(cmd.ErrOrStderr(), -1, "pets")
	out := newPetWriter(file, format)
	err = func() error {
		defer p.end()
		for pet, err := range s.ListPets(cmd.Context(), q) {
			if err != nil {
				return err
			}
			if err := out.write(pet); err != nil {
				return fileError(err)
			}
			p.add(1)
		}
		return fileError(out.flush())
	}()
	if err = keep(err); err != nil {
		return err
	}
	s.note("Exported %s.", countOf(p.done, "pet", "pets"))
	return nil
}

// createPets opens what an export is written to. keep has to be called at the
// end: a file gets its name if there was no error, and is gone otherwise.
func createPets(name string, stdout io.Writer) (w io.Writer, keep func(error) error, err error) {
	if name == "-" {
		return stdout, func(err error) error { return err }, nil
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		file, err := os.OpenFile(name, os.O_WRONLY, 0) // a device or a pipe
		return file, func(err error) error { return errors.Join(err, file.Close()) }, err
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return nil, nil, err
	}
	return file, func(err error) error {
		if closeErr := errors.Join(file.Sync(), file.Close()); err == nil {
			err = fileError(closeErr)
		}
		if err == nil {
			err = fileError(errors.Join(os.Chmod(file.Name(), 0o644), os.Rename(file.Name(), name)))
		}
		if err != nil {
			os.Remove(file.Name())
		}
		return err
	}, nil
}
