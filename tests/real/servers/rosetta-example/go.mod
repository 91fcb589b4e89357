module chainmark.test/rosetta-example

go 1.22

require github.com/coinbase/rosetta-sdk-go v0.7.9

require (
	github.com/gorilla/mux v1.8.0 // indirect
	github.com/mitchellh/mapstructure v1.4.3 // indirect
)
