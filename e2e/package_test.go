//go:build linux

package e2e

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/testenv"
)

// inRootPath returns a command with the PATH of root, which dpkg insists on.
func inRootPath(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(cleanEnv(), "PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")
	return cmd
}

// needsRoot skips a test that changes to another root directory.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		testenv.Missing(t, "only root can change to another root directory")
	}
}

// privateRoot creates a root directory with a shell, a few programs from this machine
// and dpkg's database, so that dpkg can install into it without touching the machine.
func privateRoot(t *testing.T, programs ...string) string {
	t.Helper()
	needsRoot(t)
	testenv.Need(t, "dpkg")
	root := t.TempDir()
	for _, dir := range []string{"bin", "dev", "etc", "run", "tmp", "usr/bin", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"dev/null": "", "etc/shadow": "root:*:::::::\n", "etc/passwd": "root:x:0:0::/:/bin/sh\n", "etc/group": "root:x:0:\n",
		"var/lib/dpkg/status": "", "var/lib/dpkg/available": "",
	} {
		mustWrite(t, filepath.Join(root, name), text, 0o666)
	}
	os.Chmod(filepath.Dir(root), 0o755) // the service's user needs access
	os.Chmod(root, 0o755)
	for _, program := range append(programs, "sh", "cat", "chmod", "chown", "id", "ln", "mkdir", "rm", "sed", "setpriv", "sleep") {
		copyProgram(t, root, program)
	}
	return root
}

var library = regexp.MustCompile(`(/[^ ]+) \(0x`)

// copyProgram copies a program and the libraries that it needs.
func copyProgram(t *testing.T, root, program string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + program)
	}
	if err != nil {
		testenv.Missing(t, "%s is not installed", program)
	}
	copyInto(t, path, filepath.Join(root, "bin", program))
	libraries, err := exec.Command("ldd", path).Output()
	if err != nil {
		t.Fatalf("ldd %s: %v", path, err)
	}
	for _, match := range library.FindAllStringSubmatch(string(libraries), -1) {
		copyInto(t, match[1], filepath.Join(root, match[1]))
	}
}

// TestPackageLifecycle_Slow starts with the README's three commands.
func TestPackageLifecycle_Slow(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "curl")
	testenv.Need(t, "bash")
	deb := artifact(t, ".deb")
	root := privateRoot(t, "useradd")
	if err := os.MkdirAll(filepath.Join(root, "run/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	copyInto(t, "testdata/package/systemctl", filepath.Join(root, "bin/systemctl"))
	os.Chmod(filepath.Join(root, "bin/systemctl"), 0o755)

	dir := t.TempDir()
	copyInto(t, deb, filepath.Join(dir, filepath.Base(deb)))
	newer(t, deb, filepath.Join(dir, "new"))
	mustWrite(t, filepath.Join(dir, "install.sh"), readmeInstall(t), 0o600)
	script, err := filepath.Abs("testdata/package/lifecycle.sh")
	if err != nil {
		t.Fatal(err)
	}
	argv := append(ownNetwork(), "bash", script)
	if ownNetwork() == nil {
		awaitUsualPorts(t)
	}
	cmd := inRootPath(argv...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "ROOT="+root)
	// The server that it starts must not delay it.
	output, err := os.Create(filepath.Join(dir, "output.txt"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, contents(output.Name()))
	}
}

// readmeInstall returns the README's block that installs the package.
func readmeInstall(t *testing.T) string {
	t.Helper()
	blocks, problems := readBlocks(contents("../README.md"))
	for _, b := range blocks {
		if strings.Contains(b.text, "dpkg -i") {
			return b.text
		}
	}
	t.Fatalf("the README doesn't install the package with dpkg -i %v", problems)
	return ""
}

// newer repacks a package as version 1.0.1.
func newer(t *testing.T, deb, dir string) {
	t.Helper()
	tree := t.TempDir()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{
		{"dpkg-deb", "--raw-extract", deb, tree + "/new"},
		{"sed", "-i", "s/^Version: .*/Version: 1.0.1/", tree + "/new/DEBIAN/control"},
		{"dpkg-deb", "-Znone", "--build", tree + "/new", dir + "/animalstore.deb"},
	} {
		output(t, exec.Command(argv[0], argv[1:]...))
	}
}

// TestPackageWithoutAnything_Slow installs the package where neither systemd nor a program
// that creates users exists.
func TestPackageWithoutAnything_Slow(t *testing.T) {
	t.Parallel()
	deb := artifact(t, ".deb")
	root := privateRoot(t)
	for _, argv := range [][]string{
		{"dpkg", "--root=" + root, "-i", deb},
		{"chroot", root, "/usr/bin/animalstore", "version"},
		{"dpkg", "--root=" + root, "--purge", "animalstore"},
	} {
		output(t, inRootPath(argv...))
	}
	if exists(root + "/usr/bin/animalstore") {
		t.Error("purge leaves the binary")
	}
	if got := output(t, exec.Command("dpkg-deb", "--field", deb, "Depends", "Pre-Depends", "Version")); got != "Version: 1.0.0\n" {
		t.Errorf("the package has the fields %q, want no dependency", got)
	}
}

// TestPackageWithoutSystemd_Slow: where systemd isn't running, as in a container, the package names
// the command that starts a server and shows a key, and this key works.
func TestPackageWithoutSystemd_Slow(t *testing.T) {
	t.Parallel()
	deb := artifact(t, ".deb")
	root := privateRoot(t, "useradd")
	if out := output(t, inRootPath("dpkg", "--root="+root, "-i", deb)); !strings.Contains(out, "sudo animalstore-admin serve\n") {
		t.Fatal(out)
	}
	s := startProgram(t, "chroot", root, "/usr/sbin/animalstore-admin", "serve", "--listen", "127.0.0.1:0", "--ops-listen", "")
	if !s.awaitServing() {
		t.Fatalf("the server doesn't start serving.\n%s", s.output())
	}
	testenv.Eventually(t, "a key is shown", func() bool { return liveKey.MatchString(s.stdout.String()) })
	wantStatus(t, newClient(t, s, liveKey.FindString(s.stdout.String())).get(t, "/v1/pets"), 200, "")
}

func TestUnitIsHardened_Slow(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "systemd-analyze")
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", "../packaging/linux/animalstore.service").CombinedOutput()
	if err != nil {
		t.Errorf("the exposure is more than 2.0: %v\n%s", err, out)
	}
}

// TestImage_Slow unpacks the image and runs it as a container engine would: as its user,
// with its environment and its own root.
func TestImage_Slow(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	blobs := readTar(t, artifact(t, ".oci.tar"))
	type blobName struct{ Digest string }
	var index, manifest struct {
		Manifests, Layers []blobName
		Config            blobName
	}
	var image struct {
		Config struct {
			User        string
			Env, Cmd    []string
			Entrypoint  []string
			Volumes     map[string]any
			Labels      map[string]string
			Healthcheck struct{ Test []string }
		}
	}
	blob := func(digest string) []byte { return blobs["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")] }
	parse(t, blobs["index.json"], &index)
	parse(t, blob(index.Manifests[0].Digest), &manifest)
	parse(t, blob(manifest.Config.Digest), &image)
	c := image.Config
	if c.User != "65532:65532" || len(c.Volumes) != 1 || len(c.Healthcheck.Test) == 0 {
		t.Fatalf("the image has the user %q, volumes %v and health check %v", c.User, c.Volumes, c.Healthcheck)
	}

	if c.Labels["org.opencontainers.image.source"] != "https://git.example/animalstore" || c.Labels["org.opencontainers.image.revision"] == "" {
		t.Errorf("the image has the labels %v, want its source and revision", c.Labels)
	}

	root := t.TempDir()
	os.Chmod(filepath.Dir(root), 0o755)
	os.Chmod(root, 0o755)
	layer := mustWrite(t, filepath.Join(t.TempDir(), "layer.tar.gz"), string(blob(manifest.Layers[0].Digest)), 0o600)
	output(t, exec.Command("tar", "--numeric-owner", "-xpzf", layer, "-C", root))
	address := pgtest.FreeAddress(t)
	inside := func(argv ...string) *exec.Cmd {
		cmd := exec.Command("chroot", append([]string{"--userspec=" + c.User, root}, argv...)...)
		cmd.Env = append(slices.Clone(c.Env), "ANIMALSTORE_LISTEN="+address, "ANIMALSTORE_OPS_LISTEN=")
		return cmd
	}
	s := startProcess(t, inside(append(c.Entrypoint, c.Cmd...)...))
	testenv.Eventually(t, "the health check passes", func() bool {
		return inside(c.Healthcheck.Test[1:]...).Run() == nil
	})
	if strings.Contains(s.output(), "ast_live_") {
		t.Errorf("it prints a key:\n%s", s.output())
	}
	key := inside(append(c.Entrypoint, "keys", "create", "--name", "me")...)
	if out, err := key.Output(); err != nil || !liveKey.Match(out) {
		t.Errorf("keys create: %q, %v", out, err)
	}
	if bundle := contents(root + "/etc/ssl/certs/ca-certificates.crt"); strings.Count(bundle, "BEGIN CERTIFICATE") < 50 {
		t.Error("the image has no certificates to trust")
	}
}

func parse(t *testing.T, text []byte, value any) {
	t.Helper()
	if err := json.Unmarshal(text, value); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
}

func readTar(t *testing.T, path string) map[string][]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	files := map[string][]byte{}
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
