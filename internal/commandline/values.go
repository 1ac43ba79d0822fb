package commandline

import (
	"slices"
	"strconv"
	"strings"

	"animalstore"

	"github.com/spf13/cobra"
)

// wanted is the error of a flag's Set: it says what the value must be.
type wanted string

func (w wanted) Error() string { return "must be " + string(w) }

// RegisterOneOf adds a flag with a fixed set of values. The value is called like the
// flag.
func RegisterOneOf[T ~string](cmd *cobra.Command, value *T, possible []T, flag, usage string) {
	cmd.Flags().Var(oneOf[T]{value, possible, flag}, flag, usage)
	CompleteFlag(cmd, flag, FixedValues(possible))
}

// oneOf is a flag with a fixed set of values.
type oneOf[T ~string] struct {
	value    *T
	possible []T
	name     string // of the value, in help
}

func (o oneOf[T]) String() string { return string(*o.value) }
func (o oneOf[T]) Type() string   { return o.name }

func (o oneOf[T]) Set(s string) error {
	if !slices.Contains(o.possible, T(s)) {
		return wanted(animalstore.JoinOr(o.possible))
	}
	*o.value = T(s)
	return nil
}

// IDList is a flag for ids. It may be repeated.
type IDList []int64

func (l *IDList) String() string {
	texts := make([]string, len(*l))
	for i, id := range *l {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(texts, ",")
}

func (l *IDList) Type() string { return "ids" }

func (l *IDList) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		id, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil || id < 1 {
			return wanted("ids: positive numbers separated by commas")
		}
		*l = append(*l, id)
	}
	return nil
}
