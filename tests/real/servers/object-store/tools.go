//go:build tools

// The object store that the tests read logs from.
package tools

import _ "github.com/johannesboyne/gofakes3/cmd/gofakes3"
