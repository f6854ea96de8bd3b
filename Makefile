# make run starts it, make test proves it; the rest is listed by make help.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run test test-long soak bench bench-quick package package-test upgrade-test image image-test format clean

help: ## this list, and the stages of make test
	@grep -E '^[a-z-]+: .*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+): .*## (.*)/  make \1\t\2/' | expand -t 22
	@echo && .ci/test help

run: ## build in release and start on 127.0.0.1:8080 with a development token to paste
	@.ci/run-development

test: ## prove a change in stages, within 15 minutes; CI=true runs everything, within 35 (STAGES="lint unit" runs those)
	@.ci/test $(STAGES)

test-long: ## long random runs on each store, 100,000 malformed requests, an hour of fuzzing (hours)
	@.ci/test long

soak: ## half an hour of a school's life on the release build; memory must stay flat
	@bellhop="$$(.ci/release static)" && python3 Tests/crash/soak.py --binary "$$bellhop"

bench: ## the whole table of speed and size, written to Docs/performance.md; AGAINST=binary compares with another build
	@Benchmarks/run $(if $(AGAINST),--against $(AGAINST)) $(if $(ROWS),--rows $(ROWS))

bench-quick: ## a short look at every row of that table, or at ROWS=304,200
	@Benchmarks/run --quick $(if $(AGAINST),--against $(AGAINST)) $(if $(ROWS),--rows $(ROWS))

package: ## make a Debian package and a tarball in .build-package/
	@.ci/package

package-test: ## install, start, upgrade, remove and purge the package in a clean Debian 12 root (needs root)
	@.ci/package-test

upgrade-test: ## replace replicas of FROM=commit by those of this version, under load
	@.ci/upgrade-test $(FROM)

image: ## build the container image bellhop:latest with docker, podman or buildah
	@.ci/image build

image-test: ## build the image, run it, and speak to it
	@.ci/image test

format: ## format all Swift code in place
	swift format format -i -r -p Package.swift Sources Tests Deploy/examples

clean: ## forget what was built (not the development database in .bellhop/)
	rm -rf .build .build-*
