package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// clientPackages build the packages of the clients in other languages.
var clientPackages = map[string]func(*release) error{
	"typescript": (*release).writeTypeScript,
}

// writeTypeScript writes the package that npm installs. It has the name that npm gives it.
func (r *release) writeTypeScript() error {
	fmt.Println("building the client for TypeScript")
	source := filepath.Join(r.root, "clients", "typescript")
	dir, err := os.MkdirTemp("", "animalstore-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command(filepath.Join(source, "build"), dir).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	manifest, err := r.npmManifest(filepath.Join(source, "package.json"))
	if err != nil {
		return err
	}
	readme, err := readFiles(source, "package/", "README.md")
	if err != nil {
		return err
	}
	compiled, err := readFiles(dir, "package/dist/", "*")
	if err != nil {
		return err
	}
	// npm looks for the manifest first.
	archive, err := tarOf(append(append([]file{manifest}, readme...), compiled...), r.time)
	if err != nil {
		return err
	}
	compressed, err := r.compress(archive)
	if err != nil {
		return err
	}
	return r.write("animalstore-"+r.version+".tgz", compressed)
}

// npmManifest is the package.json with the version of the release.
func (r *release) npmManifest(path string) (file, error) {
	const unset = `"version": "0.0.0"`
	text, err := os.ReadFile(path)
	if err == nil && bytes.Count(text, []byte(unset)) != 1 {
		err = fmt.Errorf("%s doesn't have %s once", path, unset)
	}
	return file{"package/package.json", 0o644, bytes.ReplaceAll(text, []byte(unset), []byte(`"version": "`+r.version+`"`))}, err
}
