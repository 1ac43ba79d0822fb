package main

import (
	"context"
	"errors"
	"iter"

	"animalstore"
	"animalstore/client"

	"github.com/spf13/cobra"
)

func ordersCommand() *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "orders",
		Short: "List, place and move orders",
		Long: `List, place and move the orders of a server. An order goes from placed to
approved to delivered; until then it can be cancelled. Its pet is pending
meanwhile, and sold or available afterwards.

` + keyHelp,
		Example: `  animalstore orders place 3
  animalstore orders set 1 --status approved
  animalstore orders list --status placed`,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE:                  onlySubcommands,
	}
	conn.register(cmd.PersistentFlags())
	cmd.AddCommand(ordersListCommand(&conn), ordersPlaceCommand(&conn), ordersShowCommand(&conn), ordersSetCommand(&conn))
	return cmd
}

var orderColumns = []column[animalstore.Order]{
	{title: "ID", text: func(o animalstore.Order) string { return decimal(o.ID) }},
	{title: "PET", text: func(o animalstore.Order) string { return decimal(o.PetID) }},
	{title: "STATUS", text: func(o animalstore.Order) string { return string(o.Status) }, colour: orderColour},
	{title: "PLACED (UTC)", time: func(o animalstore.Order) animalstore.Time { return o.CreatedAt }},
	{title: "CHANGED (UTC)", time: func(o animalstore.Order) animalstore.Time { return o.UpdatedAt }},
}

func orderColour(o animalstore.Order) colour {
	switch {
	case o.Status == animalstore.OrderDelivered:
		return green
	case o.Status.Open():
		return yellow
	}
	return faint
}

func registerOrderStatus(cmd *cobra.Command, status *animalstore.OrderStatus, usage string) {
	cmd.Flags().Var(oneOf[animalstore.OrderStatus]{status, animalstore.OrderStatuses, "status"}, "status", usage+alternatives(names(animalstore.OrderStatuses)))
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
				return printAll(s.printer, &f, "orders", orderColumns, func(pageSize int) iter.Seq2[animalstore.Order, error] {
					q.PageSize = pageSize
					return s.ListOrders(cmd.Context(), q)
				})
			})
		},
	}
	f.register(cmd, 20)
	registerOrderStatus(cmd, &q.Status, "only those in this status: ")
	cmd.Flags().Int64Var(&q.PetID, "pet", 0, "only those of the pet with this `id`")
	return cmd
}

func ordersPlaceCommand(conn *connection) *cobra.Command {
	var asJSON *bool
	var once string
	cmd := &cobra.Command{
		Use:   "place PET",
		Short: "Order a pet",
		Long: `Order a pet, by its id, and print the order. The pet has to be available
and is pending from then on. Of several who order the same one, one gets it.

One order is placed, however often the request has to be sent. To be able to
repeat the command itself, give it an --idempotency-key.`,
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
				once := onceOr(once)
				order, err := s.PlaceOrder(cmd.Context(), pet, client.IdempotencyKey(once), client.ReadMeta(&meta))
				if err != nil {
					return repeatable{err, once}
				}
				if meta.Replayed {
					s.note("Order %d was placed before, with this idempotency key.", order.ID)
				} else {
					s.note("Placed order %d: pet %d is pending now.", order.ID, order.PetID)
				}
				return printItem(s.printer, order, orderColumns)
			})
		},
	}
	registerOnce(cmd, &once)
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
		Short: "Move an order on, or cancel it",
		Long: `Move an order to another status, and print it as it is then. A placed order can
become approved, an approved one delivered, and both cancelled. Its pet
follows: it is sold when the order is delivered, and available when cancelled.`,
		Example: `  animalstore orders set 1 --status approved
  animalstore orders set 2 --status cancelled`,
		Args: oneID("order", "orders"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseID(args[0], "orders")
			if err != nil {
				return err
			}
			if status == "" {
				return usageError{errors.New("say where to move it with --status: " + alternatives(names(animalstore.OrderStatuses)))}
			}
			return conn.do(cmd, *asJSON, func(s session) error {
				order, err := s.UpdateOrder(cmd.Context(), id, animalstore.OrderPatch{Status: &status})
				if err != nil {
					return err
				}
				s.note("Order %d is %s, pet %d %s.", order.ID, order.Status, order.PetID, order.Status.PetStatus())
				return printItem(s.printer, order, orderColumns)
			})
		},
	}
	registerOrderStatus(cmd, &status, "where to move it: ")
	asJSON = jsonFlag(cmd)
	return cmd
}
