package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"animalstore/internal/testenv"
)

// pythonFragment runs a block of a document. A proxy for other hosts isn't one for this
// server.
const pythonFragment = `#!/bin/sh
export NO_PROXY='*'
export PYTHONPATH='%s/package/source/src'
exec '%s' '%s/line'"$1".py
`

// buildPythonFragments writes the Python blocks of a document to files, and a program that
// runs one of them with the package for Python. A session has no network, so the package
// is built before.
func buildPythonFragments(t *testing.T, blocks []block, program string) {
	t.Helper()
	if !slices.ContainsFunc(blocks, func(b block) bool { return b.lang == "python" && b.isFragment() }) {
		return
	}
	testenv.Need(t, "python3")
	dir := filepath.Join(filepath.Dir(program), "python")
	source, err := filepath.Abs("../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(source, ".venv", "bin", "python")
	for _, argv := range [][]string{
		{"python3", "tools/environment.py", "requirements.txt"},
		{python, "tools/build.py", filepath.Join(dir, "package")},
	} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir = source
		output(t, cmd)
	}
	for _, b := range blocks {
		if b.lang == "python" && b.isFragment() {
			text := "import os, animalstore\n" +
				"client = animalstore.Client(\"http://127.0.0.1:8080\", os.environ[\"ANIMALSTORE_API_KEY\"])\n" + b.text
			mustWrite(t, filepath.Join(dir, fmt.Sprintf("line%d.py", b.line)), text, 0o600)
		}
	}
	mustWrite(t, program, fmt.Sprintf(pythonFragment, dir, python, dir), 0o700)
}
