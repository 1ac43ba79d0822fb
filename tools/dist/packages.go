package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// zshDirs are where the distributions look for zsh completions.
var zshDirs = map[string]string{
	"deb": "/usr/share/zsh/vendor-completions/",
	"rpm": "/usr/share/zsh/site-functions/",
}

// writePackages writes the .deb and the .rpm, which have no dependencies.
func (r *release) writePackages(b binary) error {
	dir, err := os.MkdirTemp("", "animalstore-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, format := range []string{"deb", "rpm"} {
		contents, err := r.packageContents(filepath.Join(dir, format), format, b)
		if err != nil {
			return err
		}
		script := func(name string) string { return filepath.Join(r.install, name) }
		info := nfpm.WithDefaults(&nfpm.Info{
			Name:        "animalstore",
			Arch:        b.arch,
			Platform:    "linux",
			Version:     r.version,
			Section:     "net",
			Priority:    "optional",
			Maintainer:  "The animalstore authors <animalstore@localhost>",
			Description: "A store's pets over HTTP\nServes pets, orders and categories from an embedded SQLite database, or from\nPostgreSQL and Redis, and manages the keys of its clients.",
			MTime:       r.time,
			Overridables: nfpm.Overridables{
				Contents: contents,
				Scripts:  nfpm.Scripts{PostInstall: script("postinst"), PreRemove: script("prerm"), PostRemove: script("postrm")},
				RPM:      nfpm.RPM{BuildHost: "localhost", Summary: "A store's pets over HTTP"},
			},
		})
		if r.fast {
			info.Deb.Compression, info.RPM.Compression = "none", "gzip:1"
		}
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		if err := nfpm.PrepareForPackager(info, format); err != nil {
			return err
		}
		var out bytes.Buffer
		if err := packager.Package(info, &out); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
		if err := r.write(r.name(b)+"."+format, out.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// packageContents saves the files of a package in dir, from where nfpm reads them.
func (r *release) packageContents(dir, format string, b binary) (files.Contents, error) {
	list := []file{
		{"/usr/bin/animalstore", 0o755, b.content},
		{"/usr/share/doc/animalstore/copyright", 0o644, r.licenses.content},
	}
	for name, target := range map[string]file{
		"animalstore.service": {name: "/usr/lib/systemd/system/animalstore.service", mode: 0o644},
		"animalstore.socket":  {name: "/usr/lib/systemd/system/animalstore.socket", mode: 0o644},
		"animalstore.env":     {name: "/etc/animalstore/animalstore.env", mode: 0o640},
		"animalstore-admin":   {name: "/usr/sbin/animalstore-admin", mode: 0o755},
	} {
		content, err := os.ReadFile(filepath.Join(r.install, name))
		if err != nil {
			return nil, err
		}
		target.content = content
		list = append(list, target)
	}
	for _, f := range r.extras {
		switch {
		case strings.HasPrefix(f.name, "man/"):
			compressed, err := r.compress(f.content)
			if err != nil {
				return nil, err
			}
			f.name, f.content = "/usr/share/"+f.name+".gz", compressed
		case f.name == "completions/animalstore.bash":
			f.name = "/usr/share/bash-completion/completions/animalstore"
		case f.name == "completions/_animalstore":
			f.name = zshDirs[format] + "_animalstore"
		case f.name == "completions/animalstore.fish":
			f.name = "/usr/share/fish/vendor_completions.d/animalstore.fish"
		case strings.HasPrefix(f.name, "completions/"):
			continue
		default:
			f.name = "/usr/share/doc/animalstore/" + f.name
		}
		list = append(list, f)
	}
	var contents files.Contents
	for _, f := range list {
		path := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, f.content, 0o644); err != nil {
			return nil, err
		}
		content := &files.Content{Source: path, Destination: f.name, FileInfo: &files.ContentFileInfo{
			Mode: os.FileMode(f.mode), MTime: r.time, Owner: "root", Group: "root",
		}}
		if strings.HasPrefix(f.name, "/etc/") {
			content.Type = files.TypeConfigNoReplace
		}
		contents = append(contents, content)
	}
	return contents, nil
}
