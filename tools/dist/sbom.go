package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// component is a program or a module in CycloneDX.
type component struct {
	Type    string     `json:"type"`
	Ref     string     `json:"bom-ref"`
	Name    string     `json:"name"`
	Version string     `json:"version"`
	Purl    string     `json:"purl,omitempty"`
	Hashes  []checksum `json:"hashes,omitempty"`
}

type checksum struct {
	Alg     string `json:"alg"`
	Content string `json:"content"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// modules returns the modules that a program was built from, as recorded in the
// program, with the standard library as the module stdlib.
func (b binary) modules() ([]*debug.Module, error) {
	info, err := buildinfo.Read(bytes.NewReader(b.content))
	if err != nil {
		return nil, err
	}
	return append([]*debug.Module{{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}}, info.Deps...), nil
}

// writeSBOM writes a software bill of materials in CycloneDX: every program with its
// checksum and the modules in it.
func (r *release) writeSBOM() error {
	modules := map[string]component{}
	var programs []component
	var dependencies []dependency
	for _, b := range r.built {
		deps, err := b.modules()
		if err != nil {
			return err
		}
		program := component{
			Type: "application", Ref: b.os + "/" + b.arch, Name: r.name(b), Version: r.version,
			Hashes: []checksum{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(b.content))}},
		}
		needs := dependency{Ref: program.Ref}
		for _, m := range deps {
			ref := fmt.Sprintf("pkg:golang/%s@%s", m.Path, m.Version)
			modules[ref] = component{Type: "library", Ref: ref, Name: m.Path, Version: m.Version, Purl: ref}
			needs.DependsOn = append(needs.DependsOn, ref)
		}
		programs, dependencies = append(programs, program), append(dependencies, needs)
	}
	for _, ref := range slices.Sorted(maps.Keys(modules)) {
		programs = append(programs, modules[ref])
	}
	text, err := json.MarshalIndent(map[string]any{
		"bomFormat":   "CycloneDX",
		"specVersion": "1.5",
		"version":     1,
		"metadata": map[string]any{
			"timestamp": r.time.Format(time.RFC3339),
			"component": component{Type: "application", Ref: "animalstore", Name: "animalstore", Version: r.version},
		},
		"components":   programs,
		"dependencies": dependencies,
	}, "", "  ")
	if err != nil {
		return err
	}
	return r.write("animalstore_"+r.version+"_sbom.cdx.json", append(text, '\n'))
}

// collectLicenses combines the licenses of Go and of all modules in the programs, as
// these licenses require.
func (r *release) collectLicenses() (file, error) {
	dirs := map[string]string{}
	for _, b := range r.built {
		deps, err := b.modules()
		if err != nil {
			return file{}, err
		}
		for _, m := range deps {
			dirs[m.Path] = ""
		}
	}
	out, err := exec.Command("go", "-C", r.root, "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all").Output()
	if err != nil {
		return file{}, err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return file{}, err
	}
	for line := range strings.Lines(string(out) + "stdlib\t" + string(goroot)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if _, used := dirs[path]; used {
			dirs[path] = dir
		}
	}
	var text bytes.Buffer
	text.WriteString("animalstore includes the following software.\n")
	for _, path := range slices.Sorted(maps.Keys(dirs)) {
		found := 0
		for _, pattern := range []string{"LICENSE*", "LICENCE*", "COPYING*", "NOTICE*"} {
			files, err := readFiles(dirs[path], "", pattern)
			if err != nil {
				return file{}, err
			}
			for _, f := range files {
				fmt.Fprintf(&text, "\n==== %s: %s\n\n%s\n", path, f.name, bytes.TrimSpace(f.content))
				found++
			}
		}
		if found == 0 {
			return file{}, fmt.Errorf("%s has no license file in %s", path, filepath.Clean(dirs[path]))
		}
	}
	return file{"THIRD-PARTY-LICENSES.txt", 0o644, text.Bytes()}, nil
}
