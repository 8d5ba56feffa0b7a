# What Debian wants otherwise than `make install` does it, done to the files of each package before it is packed.

# Libraries of several machines live side by side: they go to lib/<triplet>, and what says where they are follows.
function(to_triplet root)
  set(lib ${root}${CPACK_PACKAGING_INSTALL_PREFIX}/lib)
  if(NOT CPACK_ONX_TRIPLET OR EXISTS ${lib}/${CPACK_ONX_TRIPLET})
    return()
  endif()
  file(GLOB files ${lib}/*.a ${lib}/*.so ${lib}/*.so.* ${lib}/pkgconfig)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    file(MAKE_DIRECTORY ${lib}/${CPACK_ONX_TRIPLET})
    file(RENAME ${file} ${lib}/${CPACK_ONX_TRIPLET}/${name})
  endforeach()
  file(GLOB tellers ${lib}/${CPACK_ONX_TRIPLET}/pkgconfig/onx.pc ${lib}/cmake/onx/*Targets-*.cmake)
  foreach(file IN LISTS tellers)
    file(READ ${file} text)
    string(REPLACE "prefix}/lib\n" "prefix}/lib/${CPACK_ONX_TRIPLET}\n" text "${text}")
    string(REPLACE "PREFIX}/lib/" "PREFIX}/lib/${CPACK_ONX_TRIPLET}/" text "${text}")
    file(WRITE ${file} "${text}")
  endforeach()
  # What MPI is, the dynamic linker knows.
  file(GLOB files ${lib}/${CPACK_ONX_TRIPLET}/libonx-mpi.so.*.*.*)
  foreach(file IN LISTS files)
    file(RPATH_REMOVE FILE ${file})
  endforeach()
endfunction()

# CHANGELOG.md as it is, and as Debian has it, dated as the files are where that is reproducible (SOURCE_DATE_EPOCH).
function(changelogs package doc)
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(COPY_FILE ${CPACK_ONX_SOURCE}/CHANGELOG.md ${doc}/changelog)
  execute_process(COMMAND awk -v package=onx -v release=${CPACK_DEBIAN_PACKAGE_RELEASE} -v who=${CPACK_PACKAGE_CONTACT}
    -v date=${date} -f ${CPACK_ONX_SOURCE}/scripts/debian_changelog.awk ${CPACK_ONX_SOURCE}/CHANGELOG.md
    OUTPUT_FILE ${doc}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND gzip -9nf ${doc}/changelog ${doc}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(GLOB components LIST_DIRECTORIES true ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(root IN LISTS components)
  get_filename_component(component ${root} NAME)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(share ${root}${CPACK_PACKAGING_INSTALL_PREFIX}/share)
  if(NOT package OR NOT IS_DIRECTORY ${root}${CPACK_PACKAGING_INSTALL_PREFIX})
    continue()
  endif()
  file(WRITE ${share}/doc/${package}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: onx
Upstream-Contact: ${CPACK_PACKAGE_CONTACT}

Files: *
Copyright: 2026 the developers of onx
License: Apache-2.0
 The text of this license is in /usr/share/common-licenses/Apache-2.0.
")
  # Only what is uploaded to Debian closes a request there.
  file(WRITE ${share}/lintian/overrides/${package} "${package}: initial-upload-closes-no-bugs\n")
  changelogs(${package} ${share}/doc/${package})
  to_triplet(${root})
  # Debian's zsh does not look into site-functions of /usr.
  if(EXISTS ${share}/zsh/site-functions)
    file(RENAME ${share}/zsh/site-functions ${share}/zsh/vendor-completions)
  endif()
  file(GLOB pages ${share}/man/man*/*.[13])
  if(pages)
    execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
