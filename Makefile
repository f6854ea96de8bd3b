# `make run` starts the service, `make test` tests a change, `make help` lists all targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run test test-long models push-model conformance conformance-mutants mutants conformance-servers soak bench bench-quick package package-test upgrade-test image image-test format clean

help: ## list the targets and the stages of make test
	@grep -E '^[a-z-]+: .*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+): .*## (.*)/  make \1\t\2/' | expand -t 22
	@echo && .ci/test help

run: ## build in release and start on 127.0.0.1:8080 with a development token to paste
	@.ci/run-development

test: ## test a change in stages, within 15 minutes; CI=true runs all stages in about 35, and fails after 45 (STAGES="lint unit" selects stages)
	@.ci/test $(STAGES)

test-long: ## long random runs on each store, 100,000 malformed requests, an hour of fuzzing, all tests under ASan and UBSan (hours)
	@.ci/test long

models: ## check the formal models exhaustively, and print a counterexample for each defect that a switch puts back
	@.ci/packages models && python3 Tests/models/check.py --show

push-model: ## play STEPS (100,000) random steps of users with phones on each store, and judge each push message (an hour)
	@.build-tools/bin/python Tests/push/model.py --binary .build/debug/bellhop --steps $(or $(STEPS),100000) --kills 40 --whole

conformance: ## check a service against Docs/protocol.md: URL=http://… SECRET=… or TOKEN_COMMAND=…; without URL, the built one
	@CONFORMANCE_SECRET='$(SECRET)' .build-tools/bin/python -m pytest -q Tests/conformance -c Tests/conformance/pytest.ini \
		--rootdir Tests/conformance $(if $(URL),--url '$(URL)') $(if $(TOKEN_COMMAND),--token-command '$(TOKEN_COMMAND)')

conformance-mutants: ## break each rule of Docs/protocol.md and see its cases fail; writes Docs/protocol-mutants.md (about 10 minutes)
	@.build-tools/bin/python Tests/conformance/run_mutants.py

mutants: ## plant defects in a copy of the code, and see the tests find each; writes Docs/mutants.md (about 20 minutes)
	@python3 Tests/mutants/run.py

conformance-servers: ## compare servers of Server-Sent Events by the generic cases; writes Docs/protocol-servers.md
	@.ci/packages servers && .build-tools/bin/python Tests/conformance/run_servers.py

soak: ## simulate half an hour of a school on the release build; memory must stay flat
	@bellhop="$$(.ci/release static)" && python3 Tests/crash/soak.py --binary "$$bellhop"

bench: ## measure speed and size and write the table to Docs/performance.md; AGAINST=binary compares with another build
	@Benchmarks/run $(if $(AGAINST),--against $(AGAINST)) $(if $(ROWS),--rows $(ROWS))

bench-quick: ## measure every row of that table briefly, or only ROWS=304,200
	@Benchmarks/run --quick $(if $(AGAINST),--against $(AGAINST)) $(if $(ROWS),--rows $(ROWS))

package: ## build a Debian package and a tarball in .build-package/
	@.ci/package

package-test: ## install, start, upgrade, remove and purge the package in a clean Debian 12 root (needs root)
	@.ci/package-test

upgrade-test: ## replace replicas of FROM=commit by replicas of this version, under load
	@.ci/upgrade-test $(FROM)

image: ## build the container image bellhop:latest with docker, podman or buildah
	@.ci/image build

image-test: ## build the image, run it and send requests to it
	@.ci/image test

format: ## format all Swift code in place
	swift format format -i -r -p Package.swift Sources Tests Deploy/examples

clean: ## delete build products (not the development database in .bellhop/)
	rm -rf .build .build-*
