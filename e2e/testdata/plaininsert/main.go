// Command plaininsert measures what animalstore seed is compared with: the rows
// of one database put into another by the simplest loop there is, a prepared
// INSERT a row in a single transaction. It prints the seconds that took.
//
// It is a program of its own, so that it runs without the race detector.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"animalstore/internal/db/sqlite"

	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// tables are those that seed fills, with what is in their columns.
var tables = []struct {
	columns int
	selects string
	inserts string
	rows    [][]any
}{
	{2, "SELECT id, name FROM categories", "INSERT INTO categories (id, name) VALUES (?, ?)", nil},
	{4, "SELECT id, category_id, status, name FROM pets", "INSERT INTO pets (id, category_id, status, name) VALUES (?, ?, ?, ?)", nil},
	{5, "SELECT id, pet_id, status, created_at, updated_at FROM orders", "INSERT INTO orders (id, pet_id, status, created_at, updated_at) VALUES (?, ?, ?, ?, ?)", nil},
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: plaininsert FROM TO")
	}
	if err := read(os.Args[1]); err != nil {
		log.Fatal("read: ", err)
	}
	made, err := sqlite.Open(context.Background(), os.Args[2], sqlite.Options{}) // makes the tables
	if err == nil {
		err = made.Close()
	}
	if err != nil {
		log.Fatal(err)
	}
	began := time.Now()
	if err := insert(os.Args[2]); err != nil {
		log.Fatal("insert: ", err)
	}
	fmt.Println(time.Since(began).Seconds())
}

func read(path string) error {
	conn, err := zombiezen.OpenConn(path, zombiezen.OpenReadOnly)
	if err != nil {
		return err
	}
	defer conn.Close()
	for i := range tables {
		table := &tables[i]
		err := sqlitex.Execute(conn, table.selects, &sqlitex.ExecOptions{ResultFunc: func(stmt *zombiezen.Stmt) error {
			row := make([]any, table.columns)
			for column := range row {
				if stmt.ColumnType(column) == zombiezen.TypeText {
					row[column] = stmt.ColumnText(column)
				} else {
					row[column] = stmt.ColumnInt64(column)
				}
			}
			table.rows = append(table.rows, row)
			return nil
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

func insert(path string) (err error) {
	conn, err := zombiezen.OpenConn(path, zombiezen.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() {
		if e := conn.Close(); err == nil {
			err = e
		}
	}()
	defer sqlitex.Transaction(conn)(&err)
	for _, table := range tables {
		stmt, err := conn.Prepare(table.inserts)
		if err != nil {
			return err
		}
		for _, row := range table.rows {
			for column, value := range row {
				switch value := value.(type) {
				case string:
					stmt.BindText(column+1, value)
				case int64:
					stmt.BindInt64(column+1, value)
				}
			}
			if _, err := stmt.Step(); err != nil {
				return err
			}
			if err := stmt.Reset(); err != nil {
				return err
			}
		}
	}
	return nil
}
