// Package check has the claims of the other scripts.
package check

import (
	"errors"
	"fmt"
	"reflect"
)

// Must returns a value that comes without an error.
func Must[T any](value T, err error) T {
	True(err == nil, "an error: ", err)
	return value
}

// Equal claims that two values are equal.
func Equal(found, expected any) {
	True(reflect.DeepEqual(found, expected), fmt.Sprintf("found %#v, expected %#v", found, expected))
}

// True claims a condition.
func True(isSo bool, about ...any) {
	if !isSo {
		panic(fmt.Sprint(about...))
	}
}

// Is claims that an error is of a kind.
func Is(err, kind error) {
	True(errors.Is(err, kind), "found ", err, ", expected ", kind)
}
