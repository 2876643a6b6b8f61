# Installs the library with its headers and package file, which belong together: nothing of them
# where the library has not been built. install.cmake sets the variables.
set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
if(NOT EXISTS "${library}")
  message(STATUS "Not installed: the runtime library and its headers, which have not been built "
    "(cmake --build ${build} --target install_deps)")
  return()
endif()
file(INSTALL "${library}" DESTINATION "${prefix}/${library_folder}")
foreach(folder ${library_folders})
  get_filename_component(parent ${folder} DIRECTORY)
  file(INSTALL "${source}/${folder}" DESTINATION "${prefix}/${include_folder}/tandem/${parent}"
    FILES_MATCHING PATTERN "*.h" PATTERN "program/tandem" EXCLUDE
    # Between a controller and its exchanges, with headers of scheduler/: no program needs them.
    PATTERN "messages/exchange.h" EXCLUDE PATTERN "messages/job_status.h" EXCLUDE)
endforeach()
file(INSTALL "${source}/actors/program/tandem" DESTINATION "${prefix}/${include_folder}"
  FILES_MATCHING PATTERN "*.h")
file(INSTALL "${build}/tandemConfig.cmake" "${build}/tandemConfigVersion.cmake"
  DESTINATION "${prefix}/${package_folder}")
