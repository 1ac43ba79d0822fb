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
	"python":     (*release).writePython,
	"typescript": (*release).writeTypeScript,
}

// writePython writes the wheel and the source archive that pip installs. They have the
// names that pip wants.
func (r *release) writePython() error {
	fmt.Println("building the client for Python")
	source, err := filepath.Abs(filepath.Join(r.root, "clients", "python"))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "animalstore-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, argv := range [][]string{
		{"python3", "tools/environment.py", "requirements.txt"},
		{filepath.Join(source, ".venv", "bin", "python"), "tools/build.py", "--version", r.version, dir},
	} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = source
		cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
	}
	built, err := readFiles(dir, "", releaseFiles)
	if err != nil {
		return err
	}
	for _, f := range built {
		if err := r.write(f.name, f.content); err != nil {
			return err
		}
	}
	return nil
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
