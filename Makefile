# A front for CMake (see CMakePresets.json). `make` installs what is missing and builds; the rest is below.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
PRESET ?= release
BUILD = build$(if $(filter-out release,$(PRESET)),-$(PRESET))

.PHONY: all deps test python web demo install package format check bench clean help
all: deps
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --parallel $(JOBS)

deps:
	@scripts/deps.sh

test: all
	ctest --preset $(PRESET) --parallel $(JOBS)

# The package for Python, in $(BUILD)/python, and its tests.
python: deps
	@scripts/deps.sh python
	cmake --preset $(PRESET) -DONX_PYTHON=ON
	cmake --build --preset $(PRESET) --parallel $(JOBS) --target onx onx_python_modules
	ctest --preset $(PRESET) -R '^python'

# The npm package, in build-web, and its tests.
web:
	@scripts/deps.sh build wasm
	web/build.sh build-web
	web/test.sh build-web

demo: all
	@sh examples/demo.sh $(BUILD)/onx

install: all
	cmake --install $(BUILD) --prefix $(PREFIX)

# Debian packages, and one program that needs nothing but the kernel, in $(BUILD)/packages.
package: all
	cpack --config $(BUILD)/CPackConfig.cmake -B $(BUILD)/packages
	cp $(BUILD)/onx-static $(BUILD)/packages/

format: deps
	@scripts/check_format --fix

bench: all
	@scripts/deps.sh peers
	@for part in codec text analysis; do sh bench/$$part.sh $(BUILD)/onx; done

clean:
	rm -rf build build-*

help:
	@echo 'make           install what is missing and build into $(BUILD)/'
	@echo 'make test      build and run every test'
	@echo 'make python    the package for Python, built and tested'
	@echo 'make web       the npm package (WebAssembly), built and tested'
	@echo 'make demo      build a small network, show, check and run it'
	@echo 'make bench     compare speed and memory with libprotobuf and the reference'
	@echo 'make install   into PREFIX (now $(PREFIX))'
	@echo 'make package   Debian packages and one static program, in $(BUILD)/packages'
	@echo 'make format    give all sources the style of .clang-format'
	@echo 'make clean     remove all builds'
	@echo 'PRESET=...     another build: debug clang asan plain'
