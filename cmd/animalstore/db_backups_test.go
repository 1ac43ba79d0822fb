package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"animalstore/internal/cli"
	"animalstore/internal/db/transfer/s3"
)

// TestBucketConfig: the variables that say how to reach a bucket, also from files.
func TestBucketConfig(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o400); err != nil {
			t.Fatal(err)
		}
		return path
	}
	credentials, id, secret := file("credentials", ""), file("id", "AKID\n"), file("secret", "s3cret\n")
	for name, test := range map[string]struct {
		env  string
		want s3.Config // zero if it is refused
	}{
		"all": {"AWS_ENDPOINT_URL=https://s3.example.com AWS_REGION=eu-central-1 AWS_ACCESS_KEY_ID=AKID AWS_SECRET_ACCESS_KEY=s3cret AWS_SESSION_TOKEN=token",
			s3.Config{Endpoint: "https://s3.example.com", Region: "eu-central-1", AccessKey: "AKID", SecretKey: "s3cret", SessionToken: "token"}},
		"from files":        {"AWS_ACCESS_KEY_ID_FILE=" + id + " AWS_SECRET_ACCESS_KEY_FILE=" + secret, s3.Config{AccessKey: "AKID", SecretKey: "s3cret"}},
		"specific first":    {"AWS_ENDPOINT_URL=https://a AWS_ENDPOINT_URL_S3=https://b AWS_DEFAULT_REGION=r AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b", s3.Config{Endpoint: "https://b", Region: "r", AccessKey: "a", SecretKey: "b"}},
		"path style":        {"AWS_S3_FORCE_PATH_STYLE=true AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b", s3.Config{AddressingStyle: "path", AccessKey: "a", SecretKey: "b"}},
		"host style":        {"AWS_S3_FORCE_PATH_STYLE=false AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b", s3.Config{AddressingStyle: "virtual", AccessKey: "a", SecretKey: "b"}},
		"a shared file":     {"AWS_SHARED_CREDENTIALS_FILE=" + credentials + " AWS_PROFILE=backups", s3.Config{CredentialsFile: credentials, Profile: "backups"}},
		"no credentials":    {"AWS_SHARED_CREDENTIALS_FILE=" + filepath.Join(dir, "missing"), s3.Config{}},
		"no secret":         {"AWS_ACCESS_KEY_ID=a", s3.Config{}},
		"a missing file":    {"AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY_FILE=" + filepath.Join(dir, "missing"), s3.Config{}},
		"a directory":       {"AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY_FILE=" + dir, s3.Config{}},
		"an unknown style":  {"AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b AWS_S3_FORCE_PATH_STYLE=auto", s3.Config{}},
		"an empty endpoint": {"AWS_ENDPOINT_URL= AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b", s3.Config{AccessKey: "a", SecretKey: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range os.Environ() {
				if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") {
					t.Setenv(name, "")
				}
			}
			for _, variable := range strings.Fields(test.env) {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			got, err := bucketConfig()
			refused := test.want == s3.Config{}
			if !refused && got != test.want || refused != errors.As(err, new(cli.UsageError)) {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}
