package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"animalstore"
)

// ListCategories lists categories by ascending id.
func (c *Client) ListCategories(ctx context.Context, options ...CallOption) iter.Seq2[animalstore.Category, error] {
	return list(ctx, c, "listCategories", "/categories", url.Values{}, options, func(*animalstore.Category) bool { return true })
}

// GetCategory returns one category.
func (c *Client) GetCategory(ctx context.Context, id int64, options ...CallOption) (animalstore.Category, error) {
	op := operation{name: "getCategory", method: http.MethodGet, path: categoryPath(id)}
	return receive(ctx, c, op, options, isCategory(id))
}

// PutCategory sets the name of a category, and creates the category if it doesn't
// exist. [Meta.Status] is 201 if it was created, unless that response was lost and the
// call was retried. With [IfNoneMatch]("*") it only creates: if the category exists,
// the error has code precondition_failed.
func (c *Client) PutCategory(ctx context.Context, category animalstore.Category, options ...CallOption) (animalstore.Category, error) {
	body := struct {
		Name string `json:"name"`
	}{category.Name}
	op := operation{name: "putCategory", method: http.MethodPut, path: categoryPath(category.ID), body: body,
		conditional: true, creates: true}
	return receive(ctx, c, op, options, isCategory(category.ID))
}

func categoryPath(id int64) string { return fmt.Sprintf("/categories/%d", id) }

func isCategory(id int64) func(*animalstore.Category) bool {
	return func(c *animalstore.Category) bool { return c.ID == id }
}
