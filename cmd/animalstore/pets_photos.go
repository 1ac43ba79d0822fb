package main

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func petsPhotosCommand(conn *connection) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "photos",
		Short: "Add, list, save and remove the photos of pets",
		Long: `Add, list, save and remove the photos of pets. A pet can have ten. The server
keeps them upright, with at most 1,600 pixels on the long side and without
metadata, such as where a picture was taken.`,
		Example: `  animalstore pets photos add rex.jpg --pet 5
  animalstore pets photos list --pet 5
  animalstore pets photos show 1 --output photo.jpg`,
	}
	return cli.Group(cmd, photosAddCommand(conn), photosListCommand(conn), photosShowCommand(conn), photosRemoveCommand(conn))
}

var photos = resource[animalstore.Photo]{"photo", "pets photos", photoColumns}

var photoColumns = []terminal.Column[animalstore.Photo]{
	{Title: "ID", Text: func(p animalstore.Photo) string { return decimal(p.ID) }},
	{Title: "PET", Text: func(p animalstore.Photo) string { return decimal(p.PetID) }},
	{Title: "WIDTH", Text: func(p animalstore.Photo) string { return fmt.Sprint(p.Width) }},
	{Title: "HEIGHT", Text: func(p animalstore.Photo) string { return fmt.Sprint(p.Height) }},
	{Title: "BYTES", Text: func(p animalstore.Photo) string { return decimal(p.Bytes) }},
	{Title: "TYPE", Text: func(p animalstore.Photo) string { return p.ContentType }},
	{Title: "ADDED (UTC)", Time: func(p animalstore.Photo) time.Time { return p.CreatedAt.Time }},
}

func photosAddCommand(conn *connection) *cobra.Command {
	var petID int64
	var files []*os.File
	cmd := photos.onServer(conn, &cobra.Command{
		Use:     "add FILE...",
		Aliases: []string{"create"},
		Short:   "Add photos to a pet",
		Long: `Add photos to a pet, and print them. Files are JPEG, PNG or WebP pictures of at
most 10 MiB and 24 megapixels. If one of them can't be added, those before it
stay.`,
		Example: `  animalstore pets photos add rex.jpg --pet 5
  animalstore pets photos add *.jpg --pet 5 --json`,
		Args: func(_ *cobra.Command, names []string) error {
			if len(names) == 0 || len(names) > animalstore.MaxPhotos {
				return cli.Usagef("give 1 to %d files: a pet can't have more photos", animalstore.MaxPhotos)
			}
			return nil
		},
		PreRunE: func(_ *cobra.Command, names []string) error {
			if petID < 1 {
				return cli.Usagef("give the id of the pet with --pet")
			}
			for _, name := range names { // all are opened before one is sent: a name may be mistyped
				file, err := os.Open(name)
				if err != nil {
					return err
				}
				files = append(files, file)
			}
			return nil
		},
	}, func(cmd *cobra.Command, s invocation, _ []string, columns []terminal.Column[animalstore.Photo]) error {
		show := s.line.Progress(int64(len(files)), "photos")
		defer show.Clear()
		return printEach(s.Printer, files, columns, func(file *os.File) (animalstore.Photo, error) {
			defer show.Add(1)
			defer file.Close() // nothing was written
			return s.addPhoto(cmd, petID, file)
		})
	})
	cmd.Flags().Int64Var(&petID, "pet", 0, "`id` of the pet (required)")
	return cmd
}

func (s invocation) addPhoto(cmd *cobra.Command, petID int64, file *os.File) (animalstore.Photo, error) {
	photo, err := s.AddPhoto(cmd.Context(), petID, file)
	if err != nil { // the error names the pet or what is wrong, not the file
		s.Note("%s was not added.", terminal.Visible(file.Name()))
		return photo, err
	}
	s.Note("Added photo %d of pet %d: %s.", photo.ID, petID, terminal.Visible(filepath.Base(file.Name())))
	return photo, nil
}

func photosListCommand(conn *connection) *cobra.Command {
	var ids []int64
	cmd := photos.onList(conn, &cobra.Command{
		Use:   "list",
		Short: "List the photos of pets, oldest first",
		Example: `  animalstore pets photos list --pet 5
  animalstore pets photos list --pet 5,6 --json`,
		PreRunE: func(*cobra.Command, []string) error {
			if len(ids) == 0 || len(ids) > maxPage {
				return cli.Usagef("give the ids of 1 to %d pets with --pet", maxPage)
			}
			return nil
		},
	}, &listFlags{}, func(cmd *cobra.Command, s invocation, pageSize int) iter.Seq2[animalstore.Photo, error] {
		return s.ListPhotos(cmd.Context(), animalstore.PhotoQuery{PetIDs: ids}, client.PageSize(pageSize))
	})
	cli.RegisterIDs(cmd, &ids, "pet", "the comma-separated `ids` of the pets (required)")
	return cmd
}

func photosShowCommand(conn *connection) *cobra.Command {
	var output string
	var thumbnail bool
	cmd := photos.onItem(conn, &cobra.Command{
		Use:   "show ID",
		Short: "Show one photo, or save its image",
		Long: `Show one photo. With --output, its image is saved in a new file. An existing
file is not replaced.`,
		Example: `  animalstore pets photos show 1
  animalstore pets photos show 1 --output photo.jpg
  animalstore pets photos show 1 --output small.jpg --thumbnail`,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if thumbnail && output == "" {
				return cli.Usagef("--thumbnail needs --output")
			}
			return cli.NotEmpty(cmd, "output")
		},
	}, func(cmd *cobra.Command, s invocation, id int64) (animalstore.Photo, error) {
		photo, err := s.GetPhoto(cmd.Context(), id)
		if err != nil || output == "" {
			return photo, err
		}
		get := s.GetImage
		if thumbnail {
			get = s.GetThumbnail
		}
		image, err := get(cmd.Context(), id)
		if err == nil {
			err = writeNewFile(output, image.Data)
		}
		if err == nil {
			s.Note("Saved %s bytes in %s.", terminal.Grouped(int64(len(image.Data))), terminal.Visible(output))
		}
		return photo, err
	})
	cmd.Flags().StringVarP(&output, "output", "o", "", "save the image in this `file`")
	cmd.Flags().BoolVar(&thumbnail, "thumbnail", false, "save the thumbnail instead")
	return cmd
}

// writeNewFile creates a file with all of the data, or none. It doesn't wrap the errors of
// the system, which callError would take for those of the connection.
func writeNewFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s already exists: choose another file", path)
	case err != nil:
		return fmt.Errorf("create the file: %v", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
		return fmt.Errorf("write the file: %v", err)
	}
	return nil
}

func photosRemoveCommand(conn *connection) *cobra.Command {
	cmd := photos.onServer(conn, &cobra.Command{
		Use:   "remove ID...",
		Short: "Remove photos permanently",
		Long: `Remove photos permanently, by their ids, and print them. On a terminal, you are
asked for confirmation.`,
		Example: `  animalstore pets photos remove 1 --yes
  animalstore pets photos remove 2 3 --yes`,
		Args: cli.SomeIDs("pets photos", maxPage),
		PreRunE: func(cmd *cobra.Command, args []string) error {
			what := terminal.Count(int64(len(cli.IDs(args))), "photo", "photos")
			return requireConfirmation(cmd, "Remove "+what+" permanently?")
		},
	}, func(cmd *cobra.Command, s invocation, args []string, columns []terminal.Column[animalstore.Photo]) error {
		return printEach(s.Printer, cli.IDs(args), columns, func(id int64) (animalstore.Photo, error) {
			photo, err := s.GetPhoto(cmd.Context(), id)
			if err == nil {
				err = s.DeletePhoto(cmd.Context(), id)
			}
			if err == nil {
				s.Note("Removed photo %d.", id)
			}
			return photo, err
		})
	})
	yesFlag(cmd)
	return cmd
}
