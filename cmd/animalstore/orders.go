package main

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

func ordersCommand() *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "orders",
		Short: "List, place, advance and cancel orders",
		Long: `List, place, advance and cancel the orders of a server. An order goes from
placed to approved to delivered, and can be cancelled until it is delivered. Its
pet is pending while the order is open, and sold or available afterwards.

` + keyHelp,
		Example: `  animalstore orders create 3
  animalstore orders set 1 --status approved
  animalstore orders list --status placed,approved --sort oldest`,
	}
	conn.register(cmd, cmd.PersistentFlags())
	return cli.Group(cmd, ordersListCommand(&conn), ordersShowCommand(&conn), ordersCreateCommand(&conn), ordersSetCommand(&conn))
}

var orders = resource[animalstore.Order]{"order", "orders", orderColumns}

var orderColumns = []terminal.Column[animalstore.Order]{
	{Title: "ID", Text: func(o animalstore.Order) string { return decimal(o.ID) }},
	{Title: "PET", Text: func(o animalstore.Order) string { return decimal(o.PetID) }},
	stateColumn("STATUS", func(o animalstore.Order) string { return string(o.Status) }),
	{Title: "PLACED (UTC)", Time: func(o animalstore.Order) time.Time { return o.CreatedAt.Time }},
	{Title: "CHANGED (UTC)", Time: func(o animalstore.Order) time.Time { return o.UpdatedAt.Time }},
	{Title: "REFERENCE", Text: func(o animalstore.Order) string { return string(o.Reference) }},
	{Title: "NOTE", Text: func(o animalstore.Order) string { return string(o.Note) }},
}

func ordersListCommand(conn *connection) *cobra.Command {
	var q animalstore.OrderQuery
	var statuses []string
	var sort string
	cmd := orders.onList(conn, &cobra.Command{
		Use:   "list",
		Short: "List orders, newest first",
		Example: `  animalstore orders list
  animalstore orders list --status placed,approved --sort oldest --all
  animalstore orders list --reference A-1042
  animalstore orders list --pet 3 --json`,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			for _, text := range statuses {
				status := animalstore.OrderStatus(text)
				if !slices.Contains(animalstore.OrderStatuses, status) {
					return cli.Usagef("--status %s, or several of them, separated by commas", animalstore.MustBeOneOf(animalstore.OrderStatuses))
				}
				q.Statuses = append(q.Statuses, status)
			}
			q.Oldest = sort == "oldest"
			if cmd.Flag("pet").Changed && q.PetID < 1 {
				return cli.Usagef("--pet must be the id of a pet, which is positive")
			}
			return cmp.Or(cli.NotEmpty(cmd, "status"), cli.NotEmpty(cmd, "reference"))
		},
	}, &listFlags{}, func(cmd *cobra.Command, s invocation, pageSize int) iter.Seq2[animalstore.Order, error] {
		return s.ListOrders(cmd.Context(), q, client.PageSize(pageSize))
	})
	cmd.Flags().StringSliceVar(&statuses, "status", nil, "only orders with one of these comma-separated statuses: "+animalstore.JoinOr(animalstore.OrderStatuses))
	cli.CompleteFlag(cmd, "status", cli.CompleteList(animalstore.OrderStatuses))
	cmd.Flags().StringVar((*string)(&q.Reference), "reference", "", "only orders with exactly this `text` as their reference")
	cli.RegisterOneOf(cmd, &sort, []string{"oldest"}, "sort", "oldest: the oldest first")
	cmd.Flags().Int64Var(&q.PetID, "pet", 0, "only orders for the pet with this `id`")
	return cmd
}

func ordersCreateCommand(conn *connection) *cobra.Command {
	var idempotencyKey string
	var f orderTexts
	cmd := orders.onItem(conn, &cobra.Command{
		Use:     "create PET",
		Aliases: []string{"place"},
		Short:   "Order a pet",
		Long: `Order a pet, by its id, and print the order. The pet has to be available, and
becomes pending. If several people order the same pet, only one of them gets it.

The order is placed once, even if the request has to be sent several times. To
make the command itself repeatable, give it an --idempotency-key.`,
		Example: `  animalstore orders create 3
  animalstore orders create 4 --reference A-1042 --note "collects on Friday"
  animalstore orders create 5 --idempotency-key cart-17 --json`,
		Args: cli.OneID("pet", "pets"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return cmp.Or(f.order(0).Validate(), cli.NotEmpty(cmd, "idempotency-key"))
		},
	}, func(cmd *cobra.Command, s invocation, pet int64) (animalstore.Order, error) {
		var meta client.Meta
		requestKey := orRandom(idempotencyKey)
		order, err := s.PlaceOrder(cmd.Context(), f.order(pet), client.IdempotencyKey(requestKey), client.ReadMeta(&meta))
		switch {
		case err != nil:
			return order, repeatable{err, requestKey}
		case meta.Replayed:
			s.Note("Order %d was already placed with this idempotency key.", order.ID)
		default:
			s.Note("Placed order %d: pet %d is now pending.", order.ID, order.PetID)
		}
		return order, nil
	})
	f.register(cmd)
	registerIdempotencyKey(cmd, &idempotencyKey)
	return cmd
}

// orderTexts are the flags for the texts of an order.
type orderTexts struct{ reference, note string }

func (f *orderTexts) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.reference, "reference", "", "your own `number` for the order")
	cmd.Flags().StringVar(&f.note, "note", "", "a `text` for the person who hands the pet over")
}

func (f *orderTexts) order(petID int64) animalstore.NewOrder {
	return animalstore.NewOrder{PetID: petID, Reference: animalstore.OptionalText(f.reference), Note: animalstore.OptionalText(f.note)}
}

func ordersShowCommand(conn *connection) *cobra.Command {
	return orders.onItem(conn, &cobra.Command{
		Use:   "show ID",
		Short: "Show one order",
		Example: `  animalstore orders show 1
  animalstore orders show 1 --json`,
	}, func(cmd *cobra.Command, s invocation, id int64) (animalstore.Order, error) {
		return s.GetOrder(cmd.Context(), id)
	})
}

func ordersSetCommand(conn *connection) *cobra.Command {
	var status animalstore.OrderStatus
	var f orderTexts
	patch := func(cmd *cobra.Command) (patch animalstore.OrderPatch) {
		in := f.order(0)
		if status != "" {
			patch.Status = &status
		}
		if cmd.Flag("reference").Changed {
			patch.Reference = &in.Reference
		}
		if cmd.Flag("note").Changed {
			patch.Note = &in.Note
		}
		return patch
	}
	cmd := orders.onItem(conn, &cobra.Command{
		Use:   "set ID",
		Short: "Advance or cancel an order, or change its reference or note",
		Long: `Change an order, and print it. A placed order can become approved, an approved
one delivered, and both can be cancelled. The pet is sold when its order is
delivered, and available when it is cancelled.

The reference and the note can be changed in any status. An empty text removes
them.`,
		Example: `  animalstore orders set 1 --status approved
  animalstore orders set 2 --status cancelled --note "changed his mind"
  animalstore orders set 2 --reference ""`,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			patch := patch(cmd)
			if patch == (animalstore.OrderPatch{}) {
				return cli.Usagef("nothing to change: use --status, --reference or --note")
			}
			return patch.Validate()
		},
	}, func(cmd *cobra.Command, s invocation, id int64) (animalstore.Order, error) {
		order, err := s.UpdateOrder(cmd.Context(), id, patch(cmd))
		switch {
		case err != nil:
		case status != "":
			s.Note("Order %d is %s, pet %d %s.", order.ID, order.Status, order.PetID, order.Status.PetStatus())
		default:
			s.Note("Changed order %d.", order.ID)
		}
		return order, err
	})
	cli.RegisterOneOf(cmd, &status, animalstore.OrderStatuses, "status", "its new status: "+animalstore.JoinOr(animalstore.OrderStatuses))
	f.register(cmd)
	return cmd
}
