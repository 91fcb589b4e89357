// CometBFT's own key-value application with faults that a test switches on, one process for each node.
package main

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cometbft/cometbft/abci/example/kvstore"
	"github.com/cometbft/cometbft/abci/server"
	"github.com/cometbft/cometbft/abci/types"
)

var (
	address = flag.String("address", "tcp://127.0.0.1:26658", "where to listen")
	node    = flag.String("node", "", "the name of the node that this process belongs to")
	home    = flag.String("home", ".", "where starts are counted")
	only    = flag.String("only", "", "the nodes whose applications have the faults, by commas; all, if empty")

	failStarts    = flag.Int("fail-starts", 0, "exit at once so many times")
	panicAt       = flag.Int64("panic-at", 0, "panic on the block of this height")
	hangAt        = flag.Int64("hang-at", 0, "never finish the block of this height")
	killAt        = flag.Int64("kill-at", 0, "end itself by SIGKILL on the block of this height")
	refuseFrom    = flag.Int64("refuse-from", 0, "refuse all transactions once this height is reached")
	hold          = flag.Int("hold", 0, "of so many accepted transactions, keep one from every block for ever")
	lose          = flag.Int("lose", 0, "of so many accepted transactions, drop one from the mempool without a block")
	commitRefused = flag.Int("commit-refused", 0, "of so many transactions, refuse one and propose it all the same")
	sleep         = flag.Duration("sleep", 0, "how long to take for every block")
)

type application struct {
	*kvstore.Application
	mutex   sync.Mutex
	height  int64
	refused [][]byte
}

// chosen says whether a transaction is the one of so many: on every node the same.
func chosen(transaction []byte, of int) bool {
	digest := sha256.Sum256(transaction)
	return of > 0 && (int(digest[0])<<8|int(digest[1]))%of == 0
}

func (app *application) CheckTx(ctx context.Context, request *types.CheckTxRequest) (*types.CheckTxResponse, error) {
	app.mutex.Lock()
	defer app.mutex.Unlock()
	again := request.Type == types.CHECK_TX_TYPE_RECHECK
	switch {
	case !again && *refuseFrom > 0 && app.height >= *refuseFrom, again && chosen(request.Tx, *lose):
		return &types.CheckTxResponse{Code: 1}, nil
	case chosen(request.Tx, *commitRefused):
		app.refused = append(app.refused, request.Tx)
		return &types.CheckTxResponse{Code: 1}, nil
	}
	return app.Application.CheckTx(ctx, request)
}

func (app *application) PrepareProposal(
	ctx context.Context, request *types.PrepareProposalRequest,
) (*types.PrepareProposalResponse, error) {
	app.mutex.Lock()
	defer app.mutex.Unlock()
	kept := app.refused
	app.refused = nil
	for _, transaction := range request.Txs {
		if !chosen(transaction, *lose) && !chosen(transaction, *hold) {
			kept = append(kept, transaction)
		}
	}
	request.Txs = kept
	return app.Application.PrepareProposal(ctx, request)
}

func (app *application) FinalizeBlock(
	ctx context.Context, request *types.FinalizeBlockRequest,
) (*types.FinalizeBlockResponse, error) {
	if request.Height == *panicAt {
		// The server recovers from panics of its own goroutines.
		go func() { panic(fmt.Sprintf("cannot execute block %d", request.Height)) }()
		select {}
	}
	if request.Height == *hangAt {
		select {}
	}
	if request.Height == *killAt {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	time.Sleep(*sleep)
	app.mutex.Lock()
	app.height = request.Height
	app.mutex.Unlock()
	return app.Application.FinalizeBlock(ctx, request)
}

// refuseToStart exits as long as the home has not seen so many starts.
func refuseToStart() {
	path := filepath.Join(*home, "starts")
	seen, _ := os.ReadFile(path)
	if len(seen) < *failStarts {
		if err := os.WriteFile(path, append(seen, '.'), 0o600); err != nil {
			log.Fatal(err)
		}
		log.Fatal("the database is locked")
	}
}

func main() {
	flag.Parse()
	if *only != "" && !slices.Contains(strings.Split(*only, ","), *node) {
		*failStarts, *hold, *lose, *commitRefused, *sleep = 0, 0, 0, 0, 0
		*panicAt, *hangAt, *killAt, *refuseFrom = 0, 0, 0, 0
	}
	refuseToStart()
	service, err := server.NewServer(*address, "socket", &application{Application: kvstore.NewInMemoryApplication()})
	if err != nil {
		log.Fatal(err)
	}
	if err := service.Start(); err != nil {
		log.Fatal(err)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	<-asked
}
