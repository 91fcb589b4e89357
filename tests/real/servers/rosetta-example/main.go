// Coinbase's own scaffold of a Rosetta server with its canned data, on the address given as its argument.
//
// Other than the SDK's main program, it listens on one address instead of all, and logs no requests: writing a line
// for each would be most of its work under load.
package main

import (
	"flag"
	"log"
	"net"
	"net/http"

	"github.com/coinbase/rosetta-sdk-go/asserter"
	"github.com/coinbase/rosetta-sdk-go/examples/server/services"
	"github.com/coinbase/rosetta-sdk-go/server"
	"github.com/coinbase/rosetta-sdk-go/types"
)

func main() {
	address := flag.String("addr", "127.0.0.1:8080", "address and port to listen on")
	flag.Parse()
	network := &types.NetworkIdentifier{Blockchain: "Rosetta", Network: "Testnet"}
	operations := []string{"Transfer", "Reward"}
	checks, err := asserter.NewServer(operations, false, []*types.NetworkIdentifier{network}, nil, false, "")
	if err != nil {
		log.Fatal(err)
	}
	router := server.NewRouter(
		server.NewNetworkAPIController(services.NewNetworkAPIService(network), checks),
		server.NewBlockAPIController(services.NewBlockAPIService(network), checks),
	)
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, router))
}
