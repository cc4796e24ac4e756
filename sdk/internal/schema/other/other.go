// Package other has types whose names another package has too; tests of schema use it.
package other

// Item shares its name with a type of the test.
type Item struct {
	Weight float64 `json:"weight"`
}

// Page is generic.
type Page[T any] struct {
	Items []T `json:"items"`
}
