# What `cmake --install` puts below a prefix: the binary with its CUDA module, and the runtime as a
# library for actors of one's own (docs/guides/write-an-actor.md).
#
#   bin/tandem, lib/libtandem_cuda.so
#   lib/libtandem_runtime.a, lib/cmake/tandem/      find_package(tandem): target tandem::runtime
#   include/tandem/{program,testing}.h              and all headers of the library, by their paths here
#   share/doc/tandem/
#
# The package file is written by hand and not exported: our targets carry -Werror, sanitizers, the
# path of this tree and precompiled headers, none of which is for users.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(library_folders runtime/base runtime/wire runtime/actor runtime/link runtime/payload runtime/http runtime/node
  actors/messages actors/rank actors/program)
add_library(tandem_runtime STATIC)
foreach(folder ${library_folders})
  get_filename_component(name ${folder} NAME)
  target_sources(tandem_runtime PRIVATE $<TARGET_OBJECTS:tandem_${name}>)
  get_filename_component(parent ${folder} DIRECTORY)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tandem/${parent}
    FILES_MATCHING PATTERN "*.h" PATTERN "program/tandem" EXCLUDE)
endforeach()
set_target_properties(tandem_runtime PROPERTIES LINKER_LANGUAGE CXX)

install(TARGETS tandem RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET tandem_cuda)
  set_target_properties(tandem_cuda PROPERTIES INSTALL_RPATH "$ORIGIN;/usr/local/cuda/lib64")
  install(TARGETS tandem_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(FILES $<TARGET_FILE:tandem_runtime> DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY actors/program/tandem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/guides docs/design docs/examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES docs/architecture.md docs/cli.md docs/job-file.md docs/glossary.md docs/reasons.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
configure_package_config_file(scripts/tandemConfig.cmake.in ${PROJECT_BINARY_DIR}/tandemConfig.cmake
  INSTALL_DESTINATION ${package_folder}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tandemConfig.cmake
  ${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake DESTINATION ${package_folder})
