package main

import (
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is the user that distroless images call nonroot.
const imageUser = 65532

const dataDir = "var/lib/animalstore/"

// descriptor points to a blob of an image.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *imagePlatform    `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type imagePlatform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// writeImage writes a container image as an archive of an OCI image layout. It contains
// the program and trusted certificates, and no shell.
func (r *release) writeImage(b binary) error {
	layer, err := tarOf(imageFiles(b), r.time)
	if err != nil {
		return err
	}
	compressed, err := r.compress(layer)
	if err != nil {
		return err
	}
	config, err := json.Marshal(r.imageConfig(b, digest(layer)))
	if err != nil {
		return err
	}
	const oci = "application/vnd.oci.image."
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2,
		"mediaType":     oci + "manifest.v1+json",
		"config":        descriptor{MediaType: oci + "config.v1+json", Digest: digest(config), Size: len(config)},
		"layers":        []descriptor{{MediaType: oci + "layer.v1.tar+gzip", Digest: digest(compressed), Size: len(compressed)}},
	})
	if err != nil {
		return err
	}
	tag := strings.ReplaceAll(r.version, "+", "-") // a tag can't have a plus
	index, err := json.Marshal(map[string]any{
		"schemaVersion": 2,
		"mediaType":     oci + "index.v1+json",
		"manifests": []descriptor{{
			MediaType: oci + "manifest.v1+json", Digest: digest(manifest), Size: len(manifest),
			Platform: &imagePlatform{b.arch, b.os},
			// The first is for podman and skopeo, the second for Docker.
			Annotations: map[string]string{
				"org.opencontainers.image.ref.name": "animalstore:" + tag,
				"io.containerd.image.name":          "docker.io/library/animalstore:" + tag,
			},
		}},
	})
	if err != nil {
		return err
	}
	files := []file{
		{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", 0o644, index},
		{"blobs/", 0o755, nil},
		{"blobs/sha256/", 0o755, nil},
	}
	for _, blob := range [][]byte{manifest, config, compressed} {
		files = append(files, file{"blobs/sha256/" + strings.TrimPrefix(digest(blob), "sha256:"), 0o644, blob})
	}
	archive, err := tarOf(files, r.time)
	if err != nil {
		return err
	}
	return r.write(r.name(b)+".oci.tar", archive)
}

// imageConfig says how to run the image. The health check is Docker's: other engines
// ignore it.
func (r *release) imageConfig(b binary, layer string) any {
	return map[string]any{
		"created":      r.time.Format(time.RFC3339),
		"architecture": b.arch,
		"os":           b.os,
		"config": map[string]any{
			"User":         fmt.Sprintf("%d:%d", imageUser, imageUser),
			"ExposedPorts": map[string]any{"8080/tcp": struct{}{}},
			"Volumes":      map[string]any{"/" + strings.TrimSuffix(dataDir, "/"): struct{}{}},
			"WorkingDir":   "/" + strings.TrimSuffix(dataDir, "/"),
			"Entrypoint":   []string{"/usr/bin/animalstore"},
			"Cmd":          []string{"serve"},
			"StopSignal":   "SIGTERM",
			"Env": []string{
				"PATH=/usr/bin",
				"ANIMALSTORE_DATABASE=sqlite:/" + dataDir + "store.db",
				"ANIMALSTORE_LISTEN=:8080",
				// A container's output ends up in a log, which is no place for a key.
				"ANIMALSTORE_CREATE_OWNER_KEY=false",
			},
			"Healthcheck": map[string]any{
				"Test":     []string{"CMD", "/usr/bin/animalstore", "healthcheck"},
				"Interval": 30 * time.Second, "Timeout": 5 * time.Second, "StartPeriod": 10 * time.Second, "Retries": 3,
			},
			"Labels": r.imageLabels(),
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{layer}},
		"history": []any{map[string]any{"created": r.time.Format(time.RFC3339), "created_by": "make dist"}},
	}
}

// imageLabels are OCI's own. The source is left out if it is unknown.
func (r *release) imageLabels() map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":       "animalstore",
		"org.opencontainers.image.description": "A store's pets over HTTP",
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.revision":    r.commit,
		"org.opencontainers.image.created":     r.time.Format(time.RFC3339),
	}
	if r.source != "" {
		labels["org.opencontainers.image.source"] = r.source
	}
	return labels
}

// imageFiles are the files of an image. SQLite needs /tmp for large sorts, and outgoing
// connections, such as to PostgreSQL, need the certificates.
func imageFiles(b binary) []file {
	var certificates []byte
	for root := range bundle.Roots() {
		certificates = append(certificates, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
	}
	user := fmt.Sprintf("root:x:0:0:root:/:/none\nanimalstore:x:%d:%[1]d:animalstore:/%s:/none\n", imageUser, strings.TrimSuffix(dataDir, "/"))
	group := fmt.Sprintf("root:x:0:\nanimalstore:x:%d:\n", imageUser)
	return []file{
		{"etc/", 0o755, nil},
		{"etc/group", 0o644, []byte(group)},
		{"etc/passwd", 0o644, []byte(user)},
		{"etc/ssl/", 0o755, nil},
		{"etc/ssl/certs/", 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates},
		{"tmp/", 0o1777, nil},
		{"usr/", 0o755, nil},
		{"usr/bin/", 0o755, nil},
		{"usr/bin/animalstore", 0o755, b.content},
		{"var/", 0o755, nil},
		{"var/lib/", 0o755, nil},
		{dataDir, 0o700, nil},
	}
}

func digest(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }
