//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// TestRPMLifecycle_Slow installs, reinstalls and removes the package in a private root
// directory, and in a soak upgrades it. A fake systemctl records the calls.
func TestRPMLifecycle_Slow(t *testing.T) {
	t.Parallel()
	path := artifact(t, ".rpm")
	testenv.Need(t, "rpm")
	root := privateRoot(t, "useradd")
	for name, text := range map[string]string{"bin/systemctl": "#!/bin/sh\necho \"$@\" >>/run/systemctl.txt\n", "run/systemd/system/.keep": ""} {
		mustWrite(t, filepath.Join(root, name), text, 0o755)
	}
	in := func(argv ...string) string {
		t.Helper()
		out := output(t, inRootPath(argv...))
		// To rpm, a script that fails after the installation is only a warning.
		if strings.Contains(out, "scriptlet failed") {
			t.Errorf("%s: %s", argv, out)
		}
		return out
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

	for line := range strings.Lines(rpm("-qp", "--requires", path)) {
		// rpmlib(...) is a feature of rpm itself, and the scripts need a shell.
		if !strings.HasPrefix(line, "rpmlib(") && line != "/bin/sh\n" {
			t.Errorf("it depends on %s", line)
		}
	}
	rpm("-i", path)
	wantSystemd("install", "daemon-reload", "enable animalstore", "--quiet is-enabled animalstore", "restart animalstore")
	if out := in("chroot", root, "/usr/sbin/animalstore-admin", "keys", "create", "--yes", "--name", "me"); !strings.Contains(out, "ast_live_") {
		t.Errorf("keys create: %s", out)
	}
	if info, err := os.Stat(filepath.Dir(data)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory of the data: %v, %v, want mode 0700", info, err)
	}
	mustWrite(t, settings, contents(settings)+"# mine\n", 0o640)

	rpm("-U", "--replacepkgs", path)
	wantSystemd("install again", "daemon-reload", "--quiet is-enabled animalstore", "restart animalstore")
	if !strings.HasSuffix(contents(settings), "# mine\n") {
		t.Error("installing it again replaces the settings")
	}

	if testenv.Soak { // building another package takes long
		rpm("-U", newerRPM(t))
		wantSystemd("upgrade", "daemon-reload", "--quiet is-enabled animalstore", "restart animalstore")
		if got := rpm("-q", "animalstore"); !strings.HasPrefix(got, "animalstore-1.0.1-") {
			t.Errorf("after the upgrade, %q is installed, want version 1.0.1", got)
		}
		if !strings.HasSuffix(contents(settings+".rpmnew"), "# new\n") {
			t.Error("an upgrade hides the new settings")
		}
		if !strings.HasSuffix(contents(settings), "# mine\n") {
			t.Error("an upgrade replaces the settings")
		}
		if out := in("chroot", root, "/usr/sbin/animalstore-admin", "keys", "list"); !strings.Contains(out, "\tme\t") {
			t.Errorf("after the upgrade, the keys are\n%s\nwant the one from before", out)
		}
	}

	rpm("-e", "animalstore")
	wantSystemd("remove", "stop animalstore.socket animalstore", "daemon-reload")
	if exists(filepath.Join(root, "usr/bin/animalstore")) {
		t.Error("removing leaves the binary")
	}
	if !exists(data) || !strings.HasSuffix(contents(settings+".rpmsave"), "# mine\n") {
		t.Error("removing deletes data, or settings that were changed")
	}
}

// newerRPM builds a package of version 1.0.1 with other settings.
func newerRPM(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	output(t, exec.Command("cp", "-R", "../packaging/linux", dir+"/install"))
	settings := dir + "/install/animalstore.env"
	mustWrite(t, settings, contents(settings)+"# new\n", 0o644)
	if err := runDist("-out", dir+"/out", "-binary", binary, "-version", "1.0.1", "-install", dir+"/install"); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "out/animalstore_1.0.1_linux_"+runtime.GOARCH+".rpm")
}
