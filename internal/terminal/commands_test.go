package terminal

import (
	"testing"
	"time"
)

func TestWrapCommands(t *testing.T) {
	const in = "  store keys create --name big --plan large --per-minute 5000\n  store list"
	const want = "  store keys create --name big \\\n      --plan large --per-minute 5000\n  store list"
	if got := WrapCommands(in, 40); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := WrapCommands(in, 80); got != in {
		t.Errorf("got\n%s\nwant it unchanged", got)
	}
}

func TestBar(t *testing.T) {
	tests := []struct {
		solid, shaded, largest int64
		want                   string
	}{
		{0, 0, 5, ""},
		{1, 1, 1_000_000, "█░"},
		{18, 18, 36, "██████████████████░░░░░░░░░░░░░░░░░░"},
	}
	for _, test := range tests {
		if got := Bar(test.solid, test.shaded, test.largest); got != test.want {
			t.Errorf("Bar(%d, %d, %d): got %q, want %q", test.solid, test.shaded, test.largest, got, test.want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"90d": 90 * 24 * time.Hour, "0d": 0, "12h": 12 * time.Hour, "1m30s": 90 * time.Second} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: got %v and error %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "-1d", "1.5d", "99999999d", "soon"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
