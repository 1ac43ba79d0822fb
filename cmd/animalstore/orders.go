package main

import (
	"context"
	"errors"
	"iter"
	"time"

	"animalstore"
	"animalstore/client"
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
		Example: `  animalstore orders place 3
  animalstore orders set 1 --status approved
  animalstore orders list --status placed`,
	}
	conn.register(cmd.PersistentFlags())
	return groupCommand(cmd, ordersListCommand(&conn), ordersPlaceCommand(&conn), ordersShowCommand(&conn), ordersSetCommand(&conn))
}

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
	cmd.Flags().Var(oneOf[animalstore.OrderStatus]{status, animalstore.OrderStatuses, "status"}, "status", usage+animalstore.JoinOr(animalstore.OrderStatuses))
}

func ordersListCommand(conn *connection) *cobra.Command {
	var f listFlags
	var q client.OrderQuery
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List orders, the latest first",
		Example: `  animalstore orders list
  animalstore orders list --status placed --all
  animalstore orders list --pet 3 --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if cmd.Flag("pet").Changed && q.PetID < 1 {
				return usageError{errors.New("--pet must be the id of a pet, which is positive")}
			}
			return conn.do(cmd, *f.json, func(s session) error {
				return printPages(s.Printer, &f, "orders", orderColumns, func(pageSize int) iter.Seq2[animalstore.Order, error] {
					q.PageSize = pageSize
					return s.ListOrders(cmd.Context(), q)
				})
			})
		},
	}
	f.register(cmd, 20)
	registerOrderStatus(cmd, &q.Status, "only orders with this status: ")
	cmd.Flags().Int64Var(&q.PetID, "pet", 0, "only orders for the pet with this `id`")
	return cmd
}

func ordersPlaceCommand(conn *connection) *cobra.Command {
	var asJSON *bool
	var idempotencyKey string
	cmd := &cobra.Command{
		Use:   "place PET",
		Short: "Order a pet",
		Long: `Order a pet, by its id, and print the order. The pet has to be available, and
becomes pending. If several people order the same pet, only one of them gets it.

One order is placed, however often the request has to be sent. To make the
command itself repeatable, give it an --idempotency-key.`,
		Example: `  animalstore orders place 3
  animalstore orders place 4 --idempotency-key cart-17 --json`,
		Args: oneID("pet", "pets"),
		RunE: func(cmd *cobra.Command, args []string) error {
			pet, err := parseID(args[0], "pets")
			if err := errors.Join(err, notEmpty(cmd, "idempotency-key")); err != nil {
				return err
			}
			return conn.do(cmd, *asJSON, func(s session) error {
				var meta client.Meta
				requestKey := orRandom(idempotencyKey)
				order, err := s.PlaceOrder(cmd.Context(), pet, client.IdempotencyKey(requestKey), client.ReadMeta(&meta))
				if err != nil {
					return repeatable{err, requestKey}
				}
				if meta.Replayed {
					s.Note("Order %d was already placed with this idempotency key.", order.ID)
				} else {
					s.Note("Placed order %d: pet %d is now pending.", order.ID, order.PetID)
				}
				return terminal.PrintItem(s.Printer, order, orderColumns)
			})
		},
	}
	registerIdempotencyKey(cmd, &idempotencyKey)
	asJSON = jsonFlag(cmd)
	return cmd
}

func ordersShowCommand(conn *connection) *cobra.Command {
	cmd := showCommand(conn, "order", "orders", orderColumns, func(ctx context.Context, s session, id int64) (animalstore.Order, error) {
		return s.GetOrder(ctx, id)
	})
	cmd.Example = `  animalstore orders show 1
  animalstore orders show 1 --json`
	return cmd
}

func ordersSetCommand(conn *connection) *cobra.Command {
	var asJSON *bool
	var status animalstore.OrderStatus
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Advance an order, or cancel it",
		Long: `Change the status of an order, and print the changed order. A placed order can
become approved, an approved one delivered, and both can be cancelled. The pet
is sold when its order is delivered, and available when it is cancelled.`,
		Example: `  animalstore orders set 1 --status approved
  animalstore orders set 2 --status cancelled`,
		Args: oneID("order", "orders"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID(args[0], "orders")
			if err != nil {
				return err
			}
			if status == "" {
				return usageError{errors.New("name the new status with --status: " + animalstore.JoinOr(animalstore.OrderStatuses))}
			}
			return conn.do(cmd, *asJSON, func(s session) error {
				order, err := s.UpdateOrder(cmd.Context(), id, animalstore.OrderPatch{Status: &status})
				if err != nil {
					return err
				}
				s.Note("Order %d is %s, pet %d %s.", order.ID, order.Status, order.PetID, order.Status.PetStatus())
				return terminal.PrintItem(s.Printer, order, orderColumns)
			})
		},
	}
	registerOrderStatus(cmd, &status, "its new status: ")
	asJSON = jsonFlag(cmd)
	return cmd
}
