//go:build tools

// Package tools ties the chain's program to this module, so that go.sum holds all that building it needs.
package tools

import _ "github.com/cosmos/cosmos-sdk/simapp/simd"
