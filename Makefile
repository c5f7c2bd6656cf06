# Thin: each target does its own set-up and calls CMake. `make help` lists them.
#
#   CC=clang       builds by another compiler, into build/<preset>-clang
#   PYTHON=...     the interpreter for bench and test scripts (default: the one that is embedded)

.PHONY: all deps demo test bench humaneval cpython-tests format lint fuzz coverage install clean help
.NOTPARALLEL:
.DEFAULT_GOAL := all

SECONDS ?= 60
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

# A compiler named on the command line gets build folders of its own; CMake would not change it in an old one.
ifeq ($(origin CC),command line)
SUFFIX := -$(notdir $(firstword $(CC)))
COMPILER := -DCMAKE_C_COMPILER=$(CC)
endif
RELEASE := build/release$(SUFFIX)
WERROR := $(if $(CI),-DBROOD_WERROR=ON)

# Ninja where it is; an existing build folder keeps what it began with. Asked late, as `deps` may just have brought it.
cmake = $(if $(shell command -v ninja),CMAKE_GENERATOR=Ninja) cmake
# $(call build,PRESET): configures and builds it.
build = @$(cmake) --preset $(1) -B build/$(1)$(SUFFIX) $(COMPILER) $(WERROR) && \
	cmake --build build/$(1)$(SUFFIX) --parallel $(JOBS)
PYTHON ?= $$(cat $(RELEASE)/generated/python)

all: ## build release into build/release/bin
	$(call build,release)

deps: ## install what is missing (Debian; as root)
	@scripts/install-deps

demo: deps all ## see it work
	@scripts/demo.sh $(RELEASE)

test: deps all ## build release and asan, run every test in both
	$(call build,asan)
	@scripts/test.sh release$(SUFFIX) asan$(SUFFIX)

bench: deps all ## measure, side by side with cold Python
	@$(PYTHON) bench/run.py --bin $(RELEASE)/bin

humaneval: deps all ## run the 164 programs of HumanEval as calls
	@$(PYTHON) tests/humaneval/run.py --bin $(RELEASE)/bin

cpython-tests: deps all ## run CPython's own tests inside and outside, and compare
	@scripts/install-deps --cpython
	@$(PYTHON) tests/cpython/run.py --bin $(RELEASE)/bin

format: ## lay out all C by .clang-format
	@scripts/install-deps --lint
	@find . \( -name build -o -name .git -o -name node_modules \) -prune -o -name '*.[ch]' -exec clang-format -i {} +

lint: ## clang-format, clang-tidy, cppcheck, mandoc
	@scripts/install-deps --lint
	$(call build,dev)
	@scripts/lint.sh

fuzz: ## run each fuzz target for SECONDS (60)
	@scripts/install-deps --fuzz
	$(call build,fuzz)
	@scripts/fuzz.sh $(SECONDS)

coverage: ## run the tests, print how many lines of each folder they ran
	@scripts/install-deps --coverage
	$(call build,coverage)
	@find build/coverage -name '*.gcda' -delete
	@scripts/test.sh coverage
	@gcovr --root . --exclude tests/ --exclude build/ --json-summary - build/coverage | $$(cat build/coverage/generated/python) scripts/coverage.py

install: all ## install into PREFIX (/usr/local), under DESTDIR if set
	@cmake --install $(RELEASE) --prefix $(PREFIX)

clean: ## remove build/
	@rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16
