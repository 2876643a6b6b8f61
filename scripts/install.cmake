# What `cmake --install` puts below a prefix, in two components:
#
#   tandem       bin/tandem, with its CUDA module where that has been built
#                share/tandem/configs/        the jobs, models and data that the documents speak of
#                share/doc/tandem/            README.md and docs/, as they lie here, so that links hold
#                share/man, share/bash-completion, share/zsh, share/fish
#   development  lib/libtandem_runtime.a, lib/cmake/tandem/   find_package(tandem): tandem::runtime
#                include/tandem/{program,testing}.h           and all headers of the library
#
# A build of target tandem alone, as scripts/quickstart makes it, is installed without the parts that
# have not been built, and told which these are. Target install_deps builds all of them.
#
# The package file is written by hand and not exported: our targets carry -Werror, sanitizers, the
# path of this tree and precompiled headers, none of which is for users.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(library_folders runtime/base runtime/wire runtime/actor runtime/link runtime/payload runtime/http runtime/sandbox
  runtime/node actors/messages actors/rank actors/program)
add_library(tandem_runtime STATIC)
foreach(folder ${library_folders})
  get_filename_component(name ${folder} NAME)
  target_sources(tandem_runtime PRIVATE $<TARGET_OBJECTS:tandem_${name}>)
endforeach()
set_target_properties(tandem_runtime PROPERTIES LINKER_LANGUAGE CXX)
add_custom_target(install_deps DEPENDS tandem tandem_runtime)

install(TARGETS tandem RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tandem)
if(TARGET tandem_cuda)
  add_dependencies(install_deps tandem_cuda)
  set_target_properties(tandem_cuda PROPERTIES INSTALL_RPATH "$ORIGIN;/usr/local/cuda/lib64")
  install(TARGETS tandem_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT tandem OPTIONAL)
endif()
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/tandem COMPONENT tandem)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tandem)
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tandem)

# Completions and the manual page are made by the binary that is installed, and its reference.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
install(CODE "set(binary \"$<TARGET_FILE:tandem>\")
set(python \"${Python3_EXECUTABLE}\")
set(source \"${PROJECT_SOURCE_DIR}\")
set(data \"${CMAKE_INSTALL_DATADIR}\")
set(module \"$<$<TARGET_EXISTS:tandem_cuda>:$<TARGET_FILE:tandem_cuda>>\")"
  COMPONENT tandem)
install(SCRIPT scripts/install_pages.cmake COMPONENT tandem)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
configure_package_config_file(scripts/tandemConfig.cmake.in ${PROJECT_BINARY_DIR}/tandemConfig.cmake
  INSTALL_DESTINATION ${package_folder}
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tandemConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(CODE "set(library \"$<TARGET_FILE:tandem_runtime>\")
set(source \"${PROJECT_SOURCE_DIR}\")
set(build \"${PROJECT_BINARY_DIR}\")
set(library_folders ${library_folders})
set(include_folder \"${CMAKE_INSTALL_INCLUDEDIR}\")
set(library_folder \"${CMAKE_INSTALL_LIBDIR}\")
set(package_folder \"${package_folder}\")"
  COMPONENT development)
install(SCRIPT scripts/install_library.cmake COMPONENT development)
