package main

import (
	"iter"
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
  animalstore orders list --status placed`,
	}
	conn.register(cmd, cmd.PersistentFlags())
	return cli.Group(cmd, ordersListCommand(&conn), ordersShowCommand(&conn), ordersCreateCommand(&conn), ordersSetCommand(&conn))
}

var orders = resource[animalstore.Order]{"order", "orders", orderColumns}

var orderColumns = []terminal.Column[animalstore.Order]{
	{Title: "ID", Text: func(o animalstore.Order) string { return decimal(o.ID) }},
	{Title: "PET", Text: func(o animalstore.Order) string { return decimal(o.PetID) }},
	{Title: "STATUS", Text: func(o animalstore.Order) string { return string(o.Status) }, Colour: orderColour},
	{Title: "PLACED (UTC)", Time: func(o animalstore.Order) time.Time { return o.CreatedAt.Time }},
	{Title: "CHANGED (UTC)", Time: func(o animalstore.Order) time.Time { return o.UpdatedAt.Time }},
}

func orderColour(o animalstore.Order) terminal.Colour {
	switch {
	case o.Status == animalstore.OrderDelivered:
		return terminal.Green
	case o.Status.Open():
		return terminal.Yellow
	}
	return terminal.Faint
}

func registerOrderStatus(cmd *cobra.Command, status *animalstore.OrderStatus, usage string) {
	cli.RegisterOneOf(cmd, status, animalstore.OrderStatuses, "status", usage+animalstore.JoinOr(animalstore.OrderStatuses))
}

func ordersListCommand(conn *connection) *cobra.Command {
	var q client.OrderQuery
	cmd := orders.onList(conn, &cobra.Command{
		Use:   "list",
		Short: "List orders, the latest first",
		Example: `  animalstore orders list
  animalstore orders list --status placed --all
  animalstore orders list --pet 3 --json`,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flag("pet").Changed && q.PetID < 1 {
				return cli.Usagef("--pet must be the id of a pet, which is positive")
			}
			return nil
		},
	}, &listFlags{}, func(cmd *cobra.Command, s session, pageSize int) iter.Seq2[animalstore.Order, error] {
		q.PageSize = pageSize
		return s.ListOrders(cmd.Context(), q)
	})
	registerOrderStatus(cmd, &q.Status, "only orders with this status: ")
	cmd.Flags().Int64Var(&q.PetID, "pet", 0, "only orders for the pet with this `id`")
	return cmd
}

func ordersCreateCommand(conn *connection) *cobra.Command {
	var idempotencyKey string
	cmd := orders.onItem(conn, &cobra.Command{
		Use:     "create PET",
		Aliases: []string{"place"},
		Short:   "Order a pet",
		Long: `Order a pet, by its id, and print the order. The pet has to be available, and
becomes pending. If several people order the same pet, only one of them gets it.

The order is placed once, even if the request has to be sent several times. To
make the command itself repeatable, give it an --idempotency-key.`,
		Example: `  animalstore orders create 3
  animalstore orders create 4 --idempotency-key cart-17 --json`,
		Args:    cli.OneID("pet", "pets"),
		PreRunE: func(cmd *cobra.Command, _ []string) error { return cli.NotEmpty(cmd, "idempotency-key") },
	}, func(cmd *cobra.Command, s session, pet int64) (animalstore.Order, error) {
		var meta client.Meta
		requestKey := orRandom(idempotencyKey)
		order, err := s.PlaceOrder(cmd.Context(), pet, client.IdempotencyKey(requestKey), client.ReadMeta(&meta))
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
	registerIdempotencyKey(cmd, &idempotencyKey)
	return cmd
}

func ordersShowCommand(conn *connection) *cobra.Command {
	return orders.onItem(conn, &cobra.Command{
		Use:   "show ID",
		Short: "Show one order",
		Example: `  animalstore orders show 1
  animalstore orders show 1 --json`,
	}, func(cmd *cobra.Command, s session, id int64) (animalstore.Order, error) {
		return s.GetOrder(cmd.Context(), id)
	})
}

func ordersSetCommand(conn *connection) *cobra.Command {
	var status animalstore.OrderStatus
	cmd := orders.onItem(conn, &cobra.Command{
		Use:   "set ID",
		Short: "Advance an order, or cancel it",
		Long: `Change the status of an order, and print the changed order. A placed order can
become approved, an approved one delivered, and both can be cancelled. The pet
is sold when its order is delivered, and available when it is cancelled.`,
		Example: `  animalstore orders set 1 --status approved
  animalstore orders set 2 --status cancelled`,
		PreRunE: func(*cobra.Command, []string) error {
			if status == "" {
				return cli.Usagef("give the new status with --status: %s", animalstore.JoinOr(animalstore.OrderStatuses))
			}
			return nil
		},
	}, func(cmd *cobra.Command, s session, id int64) (animalstore.Order, error) {
		order, err := s.UpdateOrder(cmd.Context(), id, animalstore.OrderPatch{Status: &status})
		if err == nil {
			s.Note("Order %d is %s, pet %d %s.", order.ID, order.Status, order.PetID, order.Status.PetStatus())
		}
		return order, err
	})
	registerOrderStatus(cmd, &status, "its new status: ")
	return cmd
}
