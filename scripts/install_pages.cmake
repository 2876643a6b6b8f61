# Writes the completions of each shell and the manual page below the prefix. install.cmake sets the
# variables.
set(share "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${data}")
if(module AND NOT EXISTS "${module}")
  message(STATUS "Not installed: the CUDA module, which has not been built (target install_deps)")
endif()

# write_output(FILE COMMAND …): what the command prints; a command that fails ends the installation.
function(write_output file)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE text RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "cannot make ${file}: ${ARGN} ended with ${code}")
  endif()
  message(STATUS "Installing: ${file}")
  file(WRITE "${file}" "${text}")
endfunction()

write_output("${share}/bash-completion/completions/tandem" "${binary}" completion bash)
write_output("${share}/zsh/site-functions/_tandem" "${binary}" completion zsh)
write_output("${share}/fish/vendor_completions.d/tandem.fish" "${binary}" completion fish)
write_output("${share}/man/man1/tandem.1" "${python}" "${source}/scripts/man_page" "${source}/docs/cli.md")
