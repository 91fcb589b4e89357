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

	// Counted in what the load brings: how many heights a load lasts is the machine's affair.
	failStarts    = flag.Int("fail-starts", 0, "exit at once so many times")
	panicAt       = flag.Int("panic-at", 0, "panic on the block that is the so manieth to carry transactions")
	hangAt        = flag.Int("hang-at", 0, "never finish that block")
	killAt        = flag.Int("kill-at", 0, "end itself by SIGKILL on that block")
	refuseAfter   = flag.Int("refuse-after", 0, "refuse all transactions but the first so many")
	hold          = flag.Int("hold", 0, "of so many accepted transactions, keep one from every block for ever")
	lose          = flag.Int("lose", 0, "of so many accepted transactions, drop one from the mempool without a block")
	commitRefused = flag.Int("commit-refused", 0, "of so many transactions, refuse one and propose it all the same")
	sleep         = flag.Duration("sleep", 0, "how long to take for every block")
	busy          = flag.Duration("busy", 0, "how long to compute for every block")
	grow          = flag.Int("grow", 0, "keep so many bytes of memory for every transaction of a block, for ever")
	lieAt         = flag.Int("lie-at", 0, "give another state's hash from the so manieth block with transactions on")
	failOneOf     = flag.Int("fail", 0, "of so many transactions, accept one and fail it in its block")
)

type application struct {
	*kvstore.Application
	mutex   sync.Mutex
	checked int // transactions that came, each once
	loaded  int // blocks that carried some
	refused [][]byte
	grown   [][]byte
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
	if !again {
		app.checked++
	}
	switch {
	case !again && *refuseAfter > 0 && app.checked > *refuseAfter, again && chosen(request.Tx, *lose):
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
	if len(request.Txs) > 0 {
		app.failOn(request.Height)
	}
	time.Sleep(*sleep)
	compute(*busy)
	response, err := app.Application.FinalizeBlock(ctx, request)
	if err == nil {
		app.distort(request, response)
	}
	return response, err
}

// compute keeps a processor busy, so that a profile of this process has something to show; it rarely asks for the time.
func compute(duration time.Duration) (sum int) {
	for until := time.Now().Add(duration); time.Now().Before(until); {
		for i := 0; i < 100_000; i++ {
			sum ^= sum<<1 + i
		}
	}
	return sum
}

// distort grows by what a block brings, fails some of it, and lies about the state.
func (app *application) distort(request *types.FinalizeBlockRequest, response *types.FinalizeBlockResponse) {
	for index, transaction := range request.Txs {
		kept := make([]byte, *grow)
		for place := range kept {
			kept[place] = 1 // or the kernel would give no memory
		}
		app.grown = append(app.grown, kept)
		if chosen(transaction, *failOneOf) {
			response.TxResults[index] = &types.ExecTxResult{Code: 5, Codespace: "test", Log: "no funds"}
		}
	}
	app.mutex.Lock()
	defer app.mutex.Unlock()
	if *lieAt > 0 && app.loaded >= *lieAt {
		digest := sha256.Sum256(response.AppHash)
		response.AppHash = digest[:]
	}
}

// failOn does what is due on a block that carries transactions: nothing, or what nobody returns from.
func (app *application) failOn(height int64) {
	app.mutex.Lock()
	app.loaded++
	loaded := app.loaded
	app.mutex.Unlock()
	switch loaded {
	case *panicAt:
		// The server recovers from panics of its own goroutines.
		go func() { panic(fmt.Sprintf("cannot execute block %d", height)) }()
		select {}
	case *hangAt:
		select {}
	case *killAt:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
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
		*failStarts, *hold, *lose, *commitRefused, *sleep, *busy = 0, 0, 0, 0, 0, 0
		*panicAt, *hangAt, *killAt, *refuseAfter = 0, 0, 0, 0
		*grow, *lieAt, *failOneOf = 0, 0, 0
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
