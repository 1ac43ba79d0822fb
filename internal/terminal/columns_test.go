package terminal

import (
	"strings"
	"testing"
)

type row struct{ id, name, plan, state string }

var rowColumns = []Column[row]{
	{Title: "ID", Text: func(r row) string { return r.id }},
	{Title: "NAME", Text: func(r row) string { return r.name }, Shrink: true},
	{Title: "LAST PLAN (UTC)", Text: func(r row) string { return r.plan }, Drop: 1},
	{Title: "STATE", Text: func(r row) string { return r.state }, Drop: 2},
}

// TestNarrowScreen: a narrow screen shows fewer columns, with the same names and order,
// and no line is longer than the screen.
func TestNarrowScreen(t *testing.T) {
	entry := row{"1", "a name of twenty-one", "business", "banned"}
	for width, want := range map[int]string{
		0:  "ID  NAME                  LAST PLAN (UTC)  STATE\n1   a name of twenty-one  business         banned\n",
		60: "ID  NAME                  LAST PLAN (UTC)  STATE\n1   a name of twenty-one  business         banned\n",
		40: "ID  NAME         LAST PLAN (UTC)  STATE\n1   a name of …  business         banned\n",
		33: "ID  NAME          LAST PLAN (UTC)\n1   a name of t…  business\n",
		20: "ID  NAME\n1   a name of twent…\n",
	} {
		var out strings.Builder
		if err := PrintItem(&Printer{Out: &out, Screen: Screen{Terminal: true, Width: width}}, entry, rowColumns); err != nil || out.String() != want {
			t.Errorf("%d columns: got (%v)\n%s\nwant\n%s", width, err, out.String(), want)
		}
	}
}

func TestChoose(t *testing.T) {
	chosen, err := Choose(rowColumns, []string{"state", "Last-Plan"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		screen Screen
		want   string
	}{
		{Screen{}, "banned\tbusiness\n"},
		{Screen{Terminal: true, Width: 10}, "STATE   LAST PLAN (UTC)\nbanned  business\n"}, // they were requested by name
	} {
		var out strings.Builder
		if err := PrintItem(&Printer{Out: &out, Screen: test.screen}, row{plan: "business", state: "banned"}, chosen); err != nil || out.String() != test.want {
			t.Errorf("%+v: got %q (%v), want %q", test.screen, out.String(), err, test.want)
		}
	}
	const want = `there is no column "colour": the columns are id, name, last-plan, state`
	if _, err := Choose(rowColumns, []string{"id", "colour"}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
