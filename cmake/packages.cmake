# Debian packages, by CPack: onx (the program), libonx0 (the library), libonx-dev. `make package` builds them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME onx)
set(CPACK_PACKAGE_VENDOR "onx")
set(CPACK_PACKAGE_CONTACT "the maintainers of onx <onx@localhost>")
set(CPACK_PACKAGE_HOMEPAGE_URL https://onnx.ai)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/cmake/stage.cmake)
set(CPACK_COMPONENTS_ALL program library dev)
if(MPI_FOUND)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME libonx-mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_SECTION libs)
  set(CPACK_COMPONENT_MPI_DESCRIPTION "library for ONNX models: ranks of MPI
What the library and the program load when a model is spread over devices by
MPI.")
  set(CPACK_DEBIAN_MPI_PACKAGE_ENHANCES "libonx${PROJECT_VERSION_MAJOR}, onx")
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME onx)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "read, check, explain and run ONNX models
One program that shows, draws, checks, transforms, runs and trains models of
the Open Neural Network Exchange (ONNX), with its manual, its
examples, and completion for bash, zsh and fish.")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libonx${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "library for ONNX models
Reads, writes, checks, transforms and runs models of the Open Neural Network
Exchange (ONNX), from C and whatever can call C.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libonx-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libonx${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION})")
# The manual leads to the pages and examples that come with the program.
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS onx)
set(CPACK_COMPONENT_DEV_DESCRIPTION "library for ONNX models: headers, archive, manual
What programs that use the library are built with: headers, archive, files for
pkg-config and CMake, the manual, and the interface as data.")
# What makes some operators fast or possible, each loaded when something first needs it.
set(loaded "libdnnl2, libssl3, libpcre2-8-0, libutf8proc2, liblept5, libsndfile1, libmpg123-0, libzip4")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "${loaded}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "${loaded}")
find_program(ONX_SHLIBDEPS dpkg-shlibdeps)
if(ONX_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "libc6 (>= 2.34)")
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "libc6 (>= 2.34)")
endif()
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
include(CPack)
