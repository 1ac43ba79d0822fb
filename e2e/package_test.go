package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/testenv"
)

// dist is a directory with the release for this machine, built from the binary under
// test.
var dist = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(filepath.Dir(binary), "dist")
	return dir, runDist(dir)
})

// runDist builds the release 1.0.0.
func runDist(out string, env ...string) error {
	return runDistWith([]string{"-out", out, "-binary", binary, "-version", "1.0.0"}, env...)
}

// runDistWith compiles with -trimpath, like make test, so that it finds the standard
// library in the build cache.
func runDistWith(flags []string, env ...string) error {
	argv := append([]string{"-C", "../tools", "run", "-trimpath", "./dist", "-platform", "linux/" + runtime.GOARCH, "-fast"}, flags...)
	cmd := exec.Command("go", argv...)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "SOURCE_DATE_EPOCH=1800000000"), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	return nil
}

// artifact returns the path of a file of the release. Compiling the release builder
// takes 15 seconds of CPU time.
func artifact(t *testing.T, extension string) string {
	t.Helper()
	testenv.Slow(t)
	if runtime.GOOS != "linux" {
		t.Skip("packages are for Linux")
	}
	dir, err := dist()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "animalstore_1.0.0_linux_"+runtime.GOARCH+extension)
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
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
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

// TestPackageLifecycle starts with the README's three commands.
func TestPackageLifecycle(t *testing.T) {
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
	if err := os.WriteFile(filepath.Join(dir, "install.sh"), []byte(readmeInstall(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/package/lifecycle.sh")
	if err != nil {
		t.Fatal(err)
	}
	argv := append(ownNetwork(), "bash", script)
	if ownNetwork() == nil {
		awaitUsualPorts(t)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(cleanEnv(), "ROOT="+root, "PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")
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
			if n := len(regexp.MustCompile(`(?m)^\S`).FindAllString(b.text, -1)); n != 3 {
				t.Errorf("the README needs %d commands from the package to a response, want 3", n)
			}
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
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", argv, err, out)
		}
	}
}

// TestPackageWithoutAnything installs the package where neither systemd nor a program
// that creates users exists.
func TestPackageWithoutAnything(t *testing.T) {
	t.Parallel()
	deb := artifact(t, ".deb")
	root := privateRoot(t)
	dpkg := func(args ...string) string {
		cmd := exec.Command("dpkg", append([]string{"--root=" + root}, args...)...)
		cmd.Env = append(cleanEnv(), "PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("dpkg %s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	out := dpkg("-i", deb)
	if !strings.Contains(out, "please create a system user") {
		t.Errorf("the output doesn't say that a user is missing:\n%s", out)
	}
	if strings.Contains(out, "animalstore serves") || !strings.Contains(out, "sudo animalstore-admin serve\n") {
		t.Errorf("without systemd no server runs, but the output doesn't say how to start one:\n%s", out)
	}
	if out, err := exec.Command("chroot", root, "/usr/bin/animalstore", "version").Output(); err != nil || !strings.HasPrefix(string(out), "animalstore "+animalstore.Version()) {
		t.Errorf("animalstore version: %q, %v", out, err)
	}
	for _, name := range []string{"/usr/share/man/man1/animalstore.1.gz", "/usr/share/man/man1/animalstore-keys-create.1.gz", "/usr/share/bash-completion/completions/animalstore", "/usr/share/doc/animalstore/copyright"} {
		if !exists(root + name) {
			t.Errorf("%s is missing", name)
		}
	}
	dpkg("--purge", "animalstore")
	if exists(root + "/usr/bin/animalstore") {
		t.Error("purge leaves the binary")
	}
	fields, err := exec.Command("dpkg-deb", "--field", deb, "Depends", "Pre-Depends", "Version").Output()
	if got := strings.TrimSpace(string(fields)); err != nil || got != "Version: 1.0.0" {
		t.Errorf("the package has the fields %q (%v), want no dependency", got, err)
	}
}

func TestUnitIsHardened(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "systemd-analyze")
	out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", "../packaging/linux/animalstore.service").CombinedOutput()
	if err != nil {
		t.Errorf("the exposure is more than 2.0: %v\n%s", err, out)
	}
}

// TestRPM lists what the package contains and would run.
func TestRPM(t *testing.T) {
	t.Parallel()
	path := artifact(t, ".rpm")
	testenv.Need(t, "rpm")
	query := func(args ...string) string {
		out, err := exec.Command("rpm", append([]string{"--nosignature", "-qp", path}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("rpm -qp %s: %v\n%s", args, err, out)
		}
		return string(out)
	}
	list := query("--list")
	for _, name := range []string{"/usr/bin/animalstore\n", "/usr/lib/systemd/system/animalstore.service\n", "/usr/share/zsh/site-functions/_animalstore\n", "/usr/share/man/man1/animalstore.1.gz\n"} {
		if !strings.Contains(list, name) {
			t.Errorf("%q is missing in\n%s", name, list)
		}
	}
	if got := query("--configfiles"); got != "/etc/animalstore/animalstore.env\n" {
		t.Errorf("configuration files are %q", got)
	}
	scripts := query("--scripts")
	for _, part := range []string{"postinstall scriptlet", "useradd", "preuninstall scriptlet", "systemctl stop", "postuninstall scriptlet"} {
		if !strings.Contains(scripts, part) {
			t.Errorf("%q is missing in the scripts\n%s", part, scripts)
		}
	}
	for line := range strings.Lines(query("--requires")) {
		// rpmlib(...) is a feature of rpm itself, and the scripts need a shell.
		if !strings.HasPrefix(line, "rpmlib(") && line != "/bin/sh\n" {
			t.Errorf("it depends on %s", line)
		}
	}
}

// TestImage unpacks the image and runs it as a container engine would: as its user,
// with its environment and its own root.
func TestImage(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	blobs := readTar(t, artifact(t, ".oci.tar"))
	var index, manifest struct{ Manifests, Layers []struct{ Digest string } }
	var image struct {
		Config struct {
			User        string
			Env, Cmd    []string
			Entrypoint  []string
			Volumes     map[string]any
			Healthcheck struct{ Test []string }
		}
	}
	var point struct{ Config struct{ Digest string } }
	blob := func(digest string) []byte { return blobs["blobs/sha256/"+strings.TrimPrefix(digest, "sha256:")] }
	parse(t, blobs["index.json"], &index)
	parse(t, blob(index.Manifests[0].Digest), &manifest)
	parse(t, blob(index.Manifests[0].Digest), &point)
	parse(t, blob(point.Config.Digest), &image)
	c := image.Config
	if c.User != "65532:65532" || len(c.Volumes) != 1 || len(c.Healthcheck.Test) == 0 {
		t.Fatalf("the image has the user %q, volumes %v and health check %v", c.User, c.Volumes, c.Healthcheck)
	}

	root := t.TempDir()
	os.Chmod(filepath.Dir(root), 0o755)
	os.Chmod(root, 0o755)
	layer := filepath.Join(t.TempDir(), "layer.tar.gz")
	if err := os.WriteFile(layer, blob(manifest.Layers[0].Digest), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "--numeric-owner", "-xpzf", layer, "-C", root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	address := freeAddress(t)
	inside := func(argv ...string) *exec.Cmd {
		cmd := exec.Command("chroot", append([]string{"--userspec=" + c.User, root}, argv...)...)
		cmd.Env = append(slices.Clone(c.Env), "ANIMALSTORE_LISTEN="+address, "ANIMALSTORE_OPS_LISTEN=")
		return cmd
	}
	server := inside(append(c.Entrypoint, c.Cmd...)...)
	log := &buffer{}
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Kill()
	eventually(t, time.Minute, "the health check passes", func() bool {
		return inside(c.Healthcheck.Test[1:]...).Run() == nil
	})
	if strings.Contains(log.String(), "ast_live_") {
		t.Errorf("it prints a key:\n%s", log)
	}
	key := inside(append(c.Entrypoint, "keys", "create", "--name", "me")...)
	if out, err := key.Output(); err != nil || !liveKey.Match(out) {
		t.Errorf("keys create: %q, %v", out, err)
	}
	if bundle := contents(root + "/etc/ssl/certs/ca-certificates.crt"); strings.Count(bundle, "BEGIN CERTIFICATE") < 50 {
		t.Error("the image has no certificates to trust")
	}
}

// freeAddress is an address that nothing listens on at the moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
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

// TestRPMLifecycle installs, reinstalls, upgrades and removes the package in a private
// root directory. A fake systemctl records the calls.
func TestRPMLifecycle(t *testing.T) {
	t.Parallel()
	path := artifact(t, ".rpm")
	testenv.Need(t, "rpm")
	root := privateRoot(t, "useradd")
	for name, text := range map[string]string{"bin/systemctl": "#!/bin/sh\necho \"$@\" >>/run/systemctl.txt\n", "run/systemd/system/.keep": ""} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	in := func(argv ...string) string {
		t.Helper()
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(cleanEnv(), "PATH=/usr/sbin:/sbin:/usr/bin:/bin")
		out, err := cmd.CombinedOutput()
		// To rpm, a script that fails after the installation is only a warning.
		if err != nil || strings.Contains(string(out), "scriptlet failed") {
			t.Errorf("%s: %v\n%s", argv, err, out)
		}
		return string(out)
	}
	rpm := func(args ...string) string {
		t.Helper()
		return in(append([]string{"rpm", "--root", root, "--dbpath", "/var/lib/rpm", "--nosignature"}, args...)...)
	}
	wantSystemd := func(when string, calls ...string) {
		t.Helper()
		log := filepath.Join(root, "run/systemctl.txt")
		if got, want := contents(log), strings.Join(calls, "\n")+"\n"; got != want {
			t.Errorf("%s: systemctl was called with %q, want %q", when, got, want)
		}
		os.Remove(log)
	}
	settings, data := filepath.Join(root, "etc/animalstore/animalstore.env"), filepath.Join(root, "var/lib/animalstore/store.db")

	if out := rpm("-i", path); !strings.Contains(out, "animalstore-admin keys create") {
		t.Errorf("the package doesn't say how to create a key:\n%s", out)
	}
	wantSystemd("install", "daemon-reload", "enable animalstore", "--quiet is-enabled animalstore", "restart animalstore")
	if out := in("chroot", root, "/usr/sbin/animalstore-admin", "keys", "create", "--yes", "--name", "me"); !strings.Contains(out, "ast_live_") {
		t.Errorf("keys create: %s", out)
	}
	if info, err := os.Stat(filepath.Dir(data)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of the data: %v, %v, want mode 0700", info, err)
	}
	if err := os.WriteFile(settings, append(mustRead(t, settings), "# mine\n"...), 0o640); err != nil {
		t.Fatal(err)
	}

	rpm("-U", "--replacepkgs", path)
	wantSystemd("install again", "daemon-reload", "--quiet is-enabled animalstore", "restart animalstore")
	if !strings.HasSuffix(contents(settings), "# mine\n") {
		t.Error("installing it again replaces the settings")
	}

	newer := newerRPM(t)
	rpm("-U", newer.rpm)
	wantSystemd("upgrade", "daemon-reload", "--quiet is-enabled animalstore", "restart animalstore")
	if got := rpm("-q", "animalstore"); !strings.HasPrefix(got, "animalstore-1.0.1-") {
		t.Errorf("after the upgrade, %q is installed, want version 1.0.1", got)
	}
	for name, want := range map[string]string{
		"usr/bin/animalstore": newer.program, "usr/lib/systemd/system/animalstore.service": newer.service, "etc/animalstore/animalstore.env.rpmnew": newer.settings,
	} {
		if contents(filepath.Join(root, name)) != want {
			t.Errorf("%s isn't from the new version", name)
		}
	}
	if !strings.HasSuffix(contents(settings), "# mine\n") {
		t.Error("an upgrade replaces the settings")
	}
	if out := in("chroot", root, "/usr/sbin/animalstore-admin", "keys", "list"); !strings.Contains(out, "\tme\t") {
		t.Errorf("after the upgrade, the keys are\n%s\nwant the one from before", out)
	}

	rpm("-e", "animalstore")
	wantSystemd("remove", "stop animalstore", "daemon-reload")
	if exists(filepath.Join(root, "usr/bin/animalstore")) {
		t.Error("removing leaves the binary")
	}
	if !exists(data) || !strings.HasSuffix(contents(settings+".rpmsave"), "# mine\n") {
		t.Error("removing deletes data, or settings that were changed")
	}
}

// newVersion is a package, and what files in it contain.
type newVersion struct{ rpm, program, service, settings string }

// newerRPM builds a package of version 1.0.1 with a program, a unit and settings that differ.
func newerRPM(t *testing.T) newVersion {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("cp", "-R", "../packaging/linux", dir+"/install").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	changed := func(from, to, more string) string {
		text := contents(from) + more
		if err := os.WriteFile(to, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return text
	}
	v := newVersion{
		rpm:      filepath.Join(dir, "out/animalstore_1.0.1_linux_"+runtime.GOARCH+".rpm"),
		program:  changed(binary, dir+"/animalstore", "\n"), // still runs
		service:  changed("../packaging/linux/animalstore.service", dir+"/install/animalstore.service", "# new\n"),
		settings: changed("../packaging/linux/animalstore.env", dir+"/install/animalstore.env", "# new\n"),
	}
	if err := runDistWith([]string{"-out", dir + "/out", "-binary", dir + "/animalstore", "-version", "1.0.1", "-install", dir + "/install"}); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestRelease checks the other files of a release: the archive, the checksums and the
// list of modules in the program.
func TestRelease(t *testing.T) {
	t.Parallel()
	archive := readTar(t, artifact(t, ".tar.gz"))
	dir := filepath.Dir(artifact(t, ""))
	prefix := "animalstore_1.0.0_linux_" + runtime.GOARCH + "/"
	for _, name := range []string{"README.md", "CHANGELOG.md", "man/man1/animalstore-serve.1", "completions/animalstore.bash", "completions/_animalstore", "completions/animalstore.fish"} {
		if len(archive[prefix+name]) == 0 {
			t.Errorf("the archive lacks %s", name)
		}
	}
	if string(archive[prefix+"animalstore"]) != contents(binary) {
		t.Error("the archive doesn't have the program")
	}
	var want strings.Builder
	for _, name := range list(t, dir) {
		if name != "SHA256SUMS" {
			fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256(mustRead(t, filepath.Join(dir, name))), name)
		}
	}
	if got := contents(filepath.Join(dir, "SHA256SUMS")); got != want.String() {
		t.Errorf("SHA256SUMS has\n%s\nwant\n%s", got, &want)
	}
	var sbom struct {
		BOMFormat  string
		Components []struct{ Name, Version, PURL string }
	}
	parse(t, mustRead(t, filepath.Join(dir, "animalstore_1.0.0_sbom.cdx.json")), &sbom)
	modules := 0
	for _, c := range sbom.Components {
		if strings.HasPrefix(c.PURL, "pkg:golang/") && c.Version != "" {
			modules++
		}
	}
	if sbom.BOMFormat != "CycloneDX" || modules < 10 {
		t.Errorf("the list is %q with %d modules, want CycloneDX with all of them", sbom.BOMFormat, modules)
	}
}

// TestStaticBinary: the program needs no libraries.
func TestStaticBinary(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has programs without libraries")
	}
	program, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a segment %s, want none", p.Type)
		}
	}
}

// TestOneVersion: a server shows the version in the file VERSION everywhere.
func TestOneVersion(t *testing.T) {
	t.Parallel()
	want := strings.TrimSpace(string(mustRead(t, "../VERSION")))
	if animalstore.Version() != want {
		t.Errorf("the package says %q, want %q", animalstore.Version(), want)
	}
	s := start(t, withOps())
	for what, text := range map[string]string{
		"--version": run(t, "--version").stdout, "version": run(t, "version").stdout,
		"/": newClient(t, s, "").get(t, "/").body, "metrics": firstLine(s.metrics(), "animalstore_build_info{"),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: got %.300s, want %s in it", what, text, want)
		}
	}
}

// firstLine is the first line that begins with a prefix, or "".
func firstLine(text, prefix string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	return ""
}

// TestReproducible builds the release for this machine again, in another time zone and
// with another directory for temporary files: every file has the same bytes.
func TestReproducible(t *testing.T) {
	t.Parallel()
	first := filepath.Dir(artifact(t, ".deb"))
	second := filepath.Join(t.TempDir(), "again")
	if err := runDist(second, "TZ=Asia/Kolkata", "LC_ALL=C", "TMPDIR="+t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if n := wantSameFiles(t, first, second); n < 6 { // .deb, .rpm, image, archive, SBOM, checksums
		t.Errorf("the release has %d files, want all", n)
	}
}

// TestReproducibleForAllPlatforms runs "make dist" in two clones and compares all
// files.
func TestReproducibleForAllPlatforms(t *testing.T) {
	testenv.OnlySoak(t, "compiles for six platforms")
	var outs []string
	for _, name := range []string{"one", "another"} {
		clone := filepath.Join(t.TempDir(), name)
		for _, argv := range [][]string{
			{"git", "-c", "safe.directory=*", "clone", "--quiet", "--no-hardlinks", "..", clone},
			{"make", "--no-print-directory", "-C", clone, "dist"},
		} {
			if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", argv, err, out)
			}
		}
		outs = append(outs, filepath.Join(clone, "dist"))
	}
	if n := wantSameFiles(t, outs[0], outs[1]); n < 14 {
		t.Errorf("the release has %d files, want six archives, and four packages and two images for Linux", n)
	}
}

// wantSameFiles compares the files of two directories, and returns how many there are.
func wantSameFiles(t *testing.T, one, another string) int {
	t.Helper()
	files, others := list(t, one), list(t, another)
	if strings.Join(files, "\n") != strings.Join(others, "\n") {
		t.Fatalf("one release has the files %q, the other %q", files, others)
	}
	for _, name := range files {
		if !bytes.Equal(mustRead(t, filepath.Join(one, name)), mustRead(t, filepath.Join(another, name))) {
			t.Errorf("%s isn't the same when it is built again", name)
		}
	}
	return len(files)
}

// list returns the names of a directory's files, in order.
func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
