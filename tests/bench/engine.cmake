add_executable(engine_bench engine_bench.cc)
target_link_libraries(engine_bench PRIVATE tandem_flags tandem_rollout benchmark::benchmark)
target_compile_definitions(engine_bench PRIVATE TANDEM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
set_target_properties(engine_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
