# The real kube-apiserver, kube-scheduler, kubectl and etcd, for the suites that want nothing less.

.PHONY: envtest
envtest: $(READY) ## build the real servers for tests (once; needs Go 1.26, or KUBEBUILDER_ASSETS)
	@$(BIN)/python tools/build_envtest.py

# For targets that would like the servers but can do without: says in one line why they are missing, and fails only
# where KUBESCHED_REQUIRE_ENVTEST=1 insists on them.
.PHONY: envtest-if-possible
envtest-if-possible: $(READY)
	@$(BIN)/python tools/build_envtest.py --if-possible

test: envtest-if-possible

.PHONY: test-realserver
test-realserver: envtest ## the tests against the real servers, none left out
	@KUBESCHED_REQUIRE_ENVTEST=1 $(BIN)/python -m pytest -q tests/realserver

.PHONY: bench-live
bench-live: envtest ## kubesched and kube-scheduler side by side on the real API server
	@$(BIN)/python -m tools.bench_live

.PHONY: bench-embedded
bench-embedded: envtest ## the embedded API server and the real one under the same load
	@$(BIN)/python -m tools.bench_embedded

CHURN := KUBESCHED_CHURN_NODES=500 KUBESCHED_CHURN_PODS=5000 KUBESCHED_CHURN_FAULT_EVERY=10

.PHONY: churn
churn: envtest ## 500 nodes, 5,000 pods that come and go, a fault every ten seconds (SECONDS=n, SEED=n)
	@$(CHURN) KUBESCHED_CHURN_SECONDS=$(or $(SECONDS),600) KUBESCHED_CHURN_SEED=$(SEED) KUBESCHED_REQUIRE_ENVTEST=1 \
	  $(BIN)/python -m pytest -q tests/realserver/test_churn.py

.PHONY: envtest-clean
envtest-clean: ## remove the real servers (the Go build cache stays)
	@rm -rf .envtest

.PHONY: helm
helm: ## build Helm, for the test that renders the chart with it (needs Go 1.26)
	@mkdir -p .envtest/bin
	@cd envtest/helm && CGO_ENABLED=0 GOWORK=off go build -mod=readonly -buildvcs=false -trimpath -ldflags "-s -w" \
	  -o ../../.envtest/bin/helm helm.sh/helm/v3/cmd/helm
