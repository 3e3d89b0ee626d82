# Thin front of the scripts and the CMake presets; `make help` lists the targets.
SHELL := /bin/sh
.DEFAULT_GOAL := build
.PHONY: build run demo install uninstall deb test soak mutants format lint clean help
BUILD = build
PREFIX = /usr/local

build: ## set up what is missing, build Release into build/
	@scripts/build

run: build ## ... and start a broker on 127.0.0.1:6650, data in ./data
	@exec build/oxbowd $(ARGS)

demo: build ## ... and watch a broker's storage move while messages flow (half a minute, needs nothing else)
	@exec build/oxbow-demo

install: ## put what `make` built below PREFIX (/usr/local); DESTDIR goes before it
	@test -x $(BUILD)/oxbowd || { echo "make install: nothing is built yet: run 'make' first, as an ordinary user" >&2; exit 1; }
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)

uninstall: ## take it away again; settings that were changed stay
	@PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) packaging/uninstall

deb: build ## a Debian package, in build/
	@cd build && SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || date +%s) cpack

test: ## set up what is missing and run every test
	@scripts/test

soak: ## the long lists: new simulator seeds and fuzzing, SOAK_MINUTES in all (default 60)
	@scripts/soak

mutants: ## every deliberate bug of tests/mutants must be caught by the test it names
	@scripts/mutants

format: ## rewrite the C files in the house format
	@scripts/lint --format

lint: ## format, includes, clang-tidy, cppcheck
	@scripts/lint

clean: ## remove build/ (data/ stays)
	rm -rf build

help:
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile
